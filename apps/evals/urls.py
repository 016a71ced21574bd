from django.urls import path

from apps.evals import views

app_name = "evals"

urlpatterns = [path("insights/quality", views.quality, name="quality")]
