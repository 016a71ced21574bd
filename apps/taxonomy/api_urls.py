from django.urls import path

from apps.taxonomy.api import TaxonomyView

urlpatterns = [path("taxonomy/", TaxonomyView.as_view(), name="taxonomy")]
