"""Reasoning as a client of its tools sees it: each service's result in the view that its door makes of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.identity.caller import Caller
from holdfast.reasoning import views
from holdfast.reasoning.export import Format, export_size, export_view
from holdfast.reasoning.service import Reasoning
from holdfast.reasoning.session_browser import SessionBrowser
from holdfast.store.calls import AlreadyAnswered, CallKey

Reply = dict[str, Any]

VIEWS: dict[str, Callable[[Any], Reply]] = {
    "think": views.recorded_view,
    "start_new": views.started_view,
    "load_context": views.context_view,
    "get_state": views.state_view,
    "bind_root": views.bound_view,
    "list": views.sessions_view,
    "search": views.search_view,
    "outline": views.outline_page_view,
    "passage": views.passage_view,
    "steps": views.analysis_view,
    "delete": views.deleted_view,
    **dict.fromkeys(
        ("rename", "tag", "pin", "unpin", "archive", "restore", "link", "link_root"),
        views.changed_view,
    ),
}


class _Replies:
    """Passes calls to a service on and replies with views; what has no view is the service's own."""

    def __init__(self, service: Reasoning | SessionBrowser) -> None:
        self._service = service

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._service, name)
        if name not in VIEWS:
            return method

        async def call(*arguments: Any, **options: Any) -> Reply:
            for key in (*arguments, *options.values()):
                if isinstance(key, CallKey):
                    key.view = VIEWS[name]
            try:
                return VIEWS[name](await method(*arguments, **options))
            except AlreadyAnswered as known:
                return known.result

        return call


class BrowserReplies(_Replies):
    """The session browser's replies."""

    async def passage(self, *arguments: Any, **options: Any) -> Reply:
        """A range of thoughts that fits into a reply."""
        return await self.__getattr__("passage")(*arguments, measure=views.passage_size, **options)  # type: ignore[no-any-return]

    async def export(self, caller: Caller, chosen: str | None, form: Format, *arguments: Any, **options: Any) -> Reply:
        """A page of a session that fits into a reply."""
        measure = export_size(form)
        page = await self._service.export(caller, chosen, *arguments, measure=measure, **options)  # type: ignore[union-attr]
        return export_view(page, form)


class ReasoningReplies(_Replies):
    """The replies of reasoning."""

    def __init__(self, service: Reasoning) -> None:
        super().__init__(service)
        self.browser = BrowserReplies(service.browser)

    async def list_roots(self, caller: Caller) -> Reply:
        """The roots of a caller."""
        return views.roots_view(caller, await self._service.bound_root(caller))  # type: ignore[union-attr]
