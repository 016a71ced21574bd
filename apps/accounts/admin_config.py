from django.contrib.admin.apps import AdminConfig


class FirmAdminConfig(AdminConfig):
    default_site = "apps.accounts.admin_site.FirmAdminSite"
