import os

from django.core.wsgi import get_wsgi_application

from apps.core.chunked import with_chunked_bodies

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "firmmemory.settings.dev")
application = with_chunked_bodies(get_wsgi_application())
