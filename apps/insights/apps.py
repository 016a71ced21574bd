from django.apps import AppConfig


class InsightsConfig(AppConfig):
    name = "apps.insights"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from django_q.signals import post_spawn

        from apps.core.health import register_check, register_probe
        from apps.core.schedules import register_schedule
        from apps.insights import pulse, readiness
        from apps.insights.meters import embedding_is_over, search_is_over
        from apps.insights.views import metrics
        from apps.memories.providers import embedding
        from apps.retrieval import pipeline

        pipeline.observers.add(search_is_over)
        embedding.observers.add(embedding_is_over)
        post_spawn.connect(pulse.begin, dispatch_uid="insights: pulse")
        register_schedule("insights: worker heartbeat", task="apps.insights.tasks.beat", minutes=1)
        register_probe("/metrics", metrics)
        register_check("pool", readiness.pool)
        # Reads and reviews go on without a worker; whoever looks shall see that it is not there.
        register_check("worker", readiness.worker, required=False)
        register_check("tasks", readiness.tasks, required=False)
        register_check("capture", readiness.capture, required=False)
