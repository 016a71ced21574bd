from django.urls import re_path

from apps.agents.views import mcp

app_name = "agents"
urlpatterns = [re_path(r"^mcp/?$", mcp, name="mcp")]
