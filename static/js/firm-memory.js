/* Firm Memory. What the pages do beyond plain HTML: htmx carries the forms, this keeps what was typed, says what went
   wrong, puts the focus where the reader goes on, and listens to the keys. Without it every page still works. */
(() => {
  "use strict";

  const byId = (id) => document.getElementById(id);
  const cookie = (name) => document.cookie.split("; ").find((row) => row.startsWith(`${name}=`))?.slice(name.length + 1);
  const shows = (element) => element.checkVisibility({ visibilityProperty: true });

  // --- messages ---------------------------------------------------------------------------------------------------
  let failed = null;

  function say(detail, again) {
    const toast = byId("failure").content.cloneNode(true);
    toast.querySelector("[data-detail]").textContent = detail;
    const retry = toast.querySelector("[data-retry]");
    if (again) failed = again;
    else retry.remove();
    byId("messages").replaceChildren(toast);
  }

  // What went well is told for a while; what went wrong stays until something else is said.
  let fading;
  function fade() {
    clearTimeout(fading);
    fading = setTimeout(() => {
      const messages = byId("messages");
      if (messages?.matches(":hover, :focus-within")) fade();
      else if (!messages?.querySelector(".notice-error, .notice-warning")) messages?.replaceChildren();
    }, 20_000);
  }

  function retry() {
    const { form, button } = failed ?? {};
    if (!form?.isConnected) return;
    byId("messages").replaceChildren();
    send(form, button);
  }

  // A button that says which decision it is has to be pressed: htmx sends only what was.
  function send(form, button) {
    if (button?.name && button.form === form) button.click();
    else form.requestSubmit(button?.form === form ? button : undefined);
  }

  // A problem is a small piece of HTML with sentences in it; anything else was not written by this service.
  const isOurs = (xhr) => xhr.getResponseHeader("X-Request-ID") && (xhr.getResponseHeader("Content-Type") ?? "").startsWith("text/html");
  function sentenceOf(xhr) {
    const page = isOurs(xhr) ? new DOMParser().parseFromString(xhr.responseText, "text/html") : null;
    const said = [...(page?.querySelectorAll(".notice-error p") ?? [])].map((p) => p.textContent).join(" ");
    return said || `The server answered with an error (${xhr.status}).`;
  }

  // --- requests ---------------------------------------------------------------------------------------------------
  // One at a time, since all of them change one place. Nothing overtakes a decision, whose answer has to be heard; of
  // two pages that were asked for the last one counts.
  let last = null;
  const underWay = () => last !== null && last.xhr.readyState > 0 && last.xhr.readyState < 4;
  // What a decision leads to is part of it: nobody pressed anything for that.
  const follows = (request) => !request.requestConfig.triggeringEvent;
  const deciding = () => underWay() && (last.requestConfig.verb === "post" || follows(last));

  function giveUp() {
    if (underWay() && !deciding()) last.xhr.abort();
  }

  document.addEventListener("htmx:confirm", (event) => { if (deciding()) event.preventDefault(); else giveUp(); });
  document.addEventListener("htmx:beforeRequest", ({ detail }) => { last = detail; });
  // A jump within the page is told in the same way, and nothing comes after it.
  addEventListener("popstate", () => {
    if (here() === shown) return;
    giveUp();
    hasJustCome();
  });

  // What is told of an answer comes from where it was to be put; the request knows which form it was, if it was one.
  const formOf = ({ detail }) => (detail.requestConfig.elt.matches("form") ? detail.requestConfig.elt : null);
  const attempt = (event) => {
    const form = formOf(event);
    return form ? { form, button: event.detail.requestConfig.triggeringEvent.submitter } : null;
  };

  const typedStays = (event) => (formOf(event) ? " What you typed is still here." : "");

  // Without an answer nobody knows whether it arrived; of what was sent while offline one does.
  const mayHaveArrived = (event) => event.detail.requestConfig?.verb === "post" && !event.detail.xhr?.sentOffline;
  const UNKNOWN = "Your decision may have been recorded all the same. Try again to find out: it is not recorded twice.";
  const NOTHING = "Nothing was recorded, as far as the server knows. Trying again records nothing twice.";
  const sofar = ({ detail }) => (follows(detail) ? "Your decision is recorded; only the page after it did not come. " : "");

  // --- what was meant for the page that has just gone -----------------------------------------------------------------
  // Whoever is still typing, or clicks twice, has not seen what stands there now. Keys wait for a pause, buttons a moment
  // from when it was painted. What counts is when something was pressed: a busy browser hears of it much later.
  const UNSEEN = 500;
  let seenFrom, keyAt = -Infinity, typingOn, frame;
  const unseen = (event) => event.timeStamp - seenFrom < UNSEEN;

  function isTypedOn(event) {
    const before = keyAt;
    keyAt = event.timeStamp;
    typingOn &&= keyAt - before < UNSEEN || unseen(event);
    return typingOn;
  }

  function hasJustCome() {
    seenFrom = Infinity;
    typingOn = true;
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(() => { frame = requestAnimationFrame(() => { seenFrom = performance.now(); }); });
  }

  // What the browser has kept comes as suddenly as what it has loaded.
  addEventListener("pageshow", ({ persisted }) => { if (persisted) hasJustCome(); });
  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target?.id !== "content") return;
    hasJustCome();
    markTheWay();
    // htmx puts the focus back into the field of the same name, which is another candidate's now.
    if (types(document.activeElement)) document.activeElement.blur();
  });
  document.addEventListener("click", (event) => {
    if (!unseen(event) || event.target.closest("button")?.form?.method !== "post") return;
    event.preventDefault();
    event.stopPropagation();
  }, true);

  document.addEventListener("htmx:configRequest", (event) => {
    // Whom this page was made for: in another window somebody else may have signed in since.
    event.detail.headers["Firm-Memory-Person"] = document.body.dataset.person ?? "";
    // Signing in again, perhaps in another window, renews the token; the cookie has the one that counts.
    const token = cookie("csrftoken");
    if (token && event.detail.parameters.csrfmiddlewaretoken) event.detail.parameters.csrfmiddlewaretoken = token;
  });

  document.addEventListener("htmx:beforeSend", (event) => { event.detail.xhr.sentOffline = !navigator.onLine; });

  // Refusals are answers like any other: what is framed is shown in its place, and what is not is told. Only what the
  // service did not write is an error, which htmx notes in the console.
  document.addEventListener("htmx:beforeSwap", (event) => {
    const { xhr } = event.detail;
    if (xhr.status < 400) return;
    if (xhr.getResponseHeader("Firm-Memory-Frame")) event.detail.shouldSwap = true;
    else if (isOurs(xhr)) refused(event);
    else return;
    event.detail.isError = false;
  });
  document.addEventListener("htmx:responseError", refused);

  function refused(event) {
    const { xhr } = event.detail;
    const again = xhr.status >= 500 || xhr.status === 429 ? attempt(event) : null;
    const recorded = xhr.status >= 500 && mayHaveArrived(event) ? ` ${isOurs(xhr) ? NOTHING : UNKNOWN}` : "";
    say(`${sofar(event)}${sentenceOf(xhr)}${recorded}${typedStays(event)}`, again);
  }

  document.addEventListener("htmx:sendError", (event) =>
    say(`${sofar(event)}${mayHaveArrived(event) ? `No answer came. ${UNKNOWN}` : "It did not reach the server."}${typedStays(event)}`, attempt(event)));
  document.addEventListener("htmx:timeout", (event) =>
    say(`${sofar(event)}The server did not answer in time.${mayHaveArrived(event) ? ` ${UNKNOWN}` : ""}${typedStays(event)}`, attempt(event)));

  // Before what comes looks at what is kept.
  document.addEventListener("htmx:beforeOnLoad", (event) => {
    const { xhr } = event.detail, form = formOf(event);
    if (!form || xhr.status < 200 || xhr.status >= 300 || xhr.getResponseHeader("HX-Redirect")) return;
    if (form.dataset.keep) forget(form.dataset.keep);
    if (form.matches(".queue-form")) keep(ticksAt(), null);
  });

  document.addEventListener("htmx:oobAfterSwap", (event) => { if (event.detail.target.id === "messages") fade(); });

  document.addEventListener("htmx:afterSettle", (event) => {
    if (event.detail.target?.id !== "content" && event.target?.id !== "content") return;
    offerDrafts();
    showCurrentTab();
    reachCutTexts();
    putTicksBack();
    if (!landed()) goOnAt(whatIsAmiss() ?? document.querySelector("#content h1"));
  });

  // Where the reader goes on: at what somebody else did meanwhile, at the first field that will not do, or at what is said.
  function whatIsAmiss() {
    const [clash, field, said] = [".clash h2", ".field-bad :is(input, textarea, select)", ".notice-error[role=alert]"]
      .map((kind) => document.querySelector(`#content ${kind}`));
    return clash ?? field ?? said;
  }

  function goOnAt(next) {
    if (!next) return;
    if (!next.matches("input, textarea, select")) next.tabIndex = -1;
    next.closest("details")?.setAttribute("open", "");
    next.focus({ preventScroll: !next.matches("input, textarea, select, .clash h2") });
  }

  const offline = () => { const bar = byId("offline"); if (bar) bar.hidden = navigator.onLine; };
  addEventListener("offline", offline);
  addEventListener("online", offline);

  // --- what this tab keeps, for one person alone --------------------------------------------------------------------
  const keptAs = (kind, of) => `${kind}:${document.body.dataset.person}:${of}`;
  function kept(key) {
    try { return JSON.parse(sessionStorage.getItem(key)); } catch { return null; }
  }
  function keep(key, value) {
    try {
      if (value === null) sessionStorage.removeItem(key);
      else sessionStorage.setItem(key, JSON.stringify(value));
    } catch { /* full or forbidden: the page itself still has it */ }
  }

  // --- what was typed, kept until it is decided -----------------------------------------------------------------------
  const keyOf = (candidate) => keptAs("draft", candidate);
  const fieldsOf = (form) => [...form.elements].filter((field) => field.name && field.type !== "hidden" && field.type !== "submit");
  const isBox = (field) => field.type === "checkbox" || field.type === "radio";
  const valueOf = (field) => (isBox(field) ? field.checked : field.value);
  const untouched = (field) => isBox(field) ? field.checked === field.defaultChecked
    : field.options ? [...field.options].every((option) => option.selected === option.defaultSelected || !option.selected && !option.defaultSelected)
    : field.value === field.defaultValue;

  const read = (candidate) => kept(keyOf(candidate)) ?? {};
  const write = (candidate, draft) => keep(keyOf(candidate), Object.keys(draft).length ? draft : null);
  const forget = (candidate) => keep(keyOf(candidate), null);

  document.addEventListener("input", ({ target }) => {
    const form = target.closest?.("form[data-keep]");
    if (form) keepTyped(form);
  });

  function keepTyped(form) {
    const draft = read(form.dataset.keep), waiting = offerOfDraft() ? offered : [];
    for (const field of fieldsOf(form)) {
      if (waiting.includes(field.id)) continue;
      if (untouched(field) && !("sent" in form.dataset && field.id in draft)) delete draft[field.id];
      else draft[field.id] = valueOf(field);
    }
    write(form.dataset.keep, draft);
  }

  // What came back with a refusal is what was sent, without what the server does not repeat: a secret is not kept here.
  function keepAsRefused() {
    for (const form of document.querySelectorAll("form[data-keep][data-sent]")) {
      const draft = read(form.dataset.keep);
      for (const field of fieldsOf(form)) if (field.id in draft) draft[field.id] = valueOf(field);
      write(form.dataset.keep, draft);
    }
  }

  // What was sent by a page of its own has arrived where the next page says what became of it, and does not ask for it again.
  const SENT = keptAs("sent", "");
  document.addEventListener("submit", ({ target }) => { if (target.dataset.keep && !target.closest("[hx-boost]")) keep(SENT, target.dataset.keep); });
  function forgetWhatArrived() {
    const sent = kept(SENT);
    if (sent && byId("messages")?.querySelector(".notice") && !document.querySelector("[data-lost], form[data-sent]")) forget(sent);
    keep(SENT, null);
  }

  const isText = (value) => typeof value === "string" && value.trim() !== "";

  // The fields of what is offered to be put back: until that is done, or it is discarded, they are not written over.
  let offered = [];
  const offerOfDraft = () => document.querySelector("[data-draft-restore]")?.closest("[data-draft]");

  function offerDrafts() {
    // One settling may be told several times.
    for (const earlier of document.querySelectorAll("[data-draft]")) earlier.remove();
    const place = document.querySelector("[data-keep]");
    if (!place) return;
    keepAsRefused();
    const draft = read(place.dataset.keep);
    offered = Object.keys(draft).filter((id) => byId(id) && valueOf(byId(id)) !== draft[id]);
    if (offered.length) offer("draft", place);
    else if ("decided" in place.dataset) keepAfterDecision(place, draft);
  }

  function offer(template, place) {
    const shown = byId(template).content.cloneNode(true).firstElementChild;
    shown.dataset.draft = place.dataset.keep;
    (place.closest("details") ?? place).before(shown);
    return shown;
  }

  // Somebody else was faster: what was typed has no field any more and is there to be copied, until it is discarded.
  // Whoever decided it needs no copy of their own words.
  function keepAfterDecision(place, draft) {
    const left = Object.entries(draft).filter(([id, value]) => !byId(id) && isText(value));
    if (!left.length) return;
    if (place.dataset.decided === "mine") forget(place.dataset.keep);
    else if (!document.querySelector(".clash .kept")) {
      const shown = offer("typed", place);
      const example = shown.querySelector("[data-text]");
      for (const [id, value] of left) {
        const text = example.cloneNode();
        text.textContent = id.endsWith("-type") ? value.replaceAll("_", " ") : value;
        example.before(text);
      }
      example.remove();
    }
  }

  function restoreDraft(offer) {
    for (const [id, value] of Object.entries(read(offer.dataset.draft))) {
      const field = byId(id);
      if (!field) continue;
      if (isBox(field)) field.checked = value;
      else field.value = value;
      field.closest("details")?.setAttribute("open", "");
      field.focus();
    }
    offer.remove();
  }

  // What was changed is shown as long as it would be sent.
  document.addEventListener("toggle", ({ target }) => {
    if (!target.matches?.(".amend") || target.open) return;
    if ([...target.querySelectorAll("input, textarea, select")].some((field) => !untouched(field))) target.open = true;
  }, true);

  // What has to be settled, or looked at, before an approval is sent: a sentence, or nothing.
  function standsInTheWay() {
    const reason = byId("reject-reason"), draft = offerOfDraft(), fold = document.querySelector("#candidate .card-hero .fold");
    if (reason?.value.trim()) {
      reason.focus();
      return "There is a reason to reject it below. Clear that before you approve, or reject it.";
    }
    if (draft) {
      draft.querySelector("[data-draft-restore]").focus();
      return "You had written something here that was not sent. Put it back or discard it before you approve.";
    }
    return unfolds(fold) ? "Read it to the end first; press again to approve." : null;
  }

  // What lies folded has not been seen. Whoever has unfolded it once, by this or by hand, may fold it again.
  function unfolds(fold) {
    if (!fold || fold.open || "opened" in fold.dataset) return false;
    fold.open = true;
    hasJustCome();
    return true;
  }

  document.addEventListener("toggle", ({ target }) => { if (target.matches?.(".fold, .sample-rest") && target.open) target.dataset.opened = ""; }, true);

  function objectionTo(form, button) {
    if (form.id === "approve") return standsInTheWay();
    if (button?.value === "approve" && unfolds(form.parentElement.querySelector(".sample-rest"))) return "Look at all of them first; press again to approve.";
    return null;
  }

  document.addEventListener("submit", (event) => {
    const objection = objectionTo(event.target, event.submitter);
    if (!objection) return;
    event.preventDefault();
    event.stopPropagation();
    say(objection);
  }, true);

  // --- the way back to a list ---------------------------------------------------------------------------------------
  // Which list a row was opened from, which row that was, and which one was looked at since. `due` is true while that is
  // what is looked at, so that coming back leads to the row, and loading the list another time does not.
  const addressOf = ({ pathname, search }) => pathname + search;
  const here = () => addressOf(location);
  // What is on the page, which is not what the address names while somebody who went back waits for the page before.
  let shown = here();
  document.addEventListener("htmx:pushedIntoHistory", () => { shown = here(); });
  const titles = () => [...document.querySelectorAll("#content .row-title[href]")];
  const filterOf = (search) => [...new URLSearchParams(search)].filter(([name, value]) => value && name !== "cursor").sort().join("&");
  const WAY = keptAs("way", "");

  document.addEventListener("click", (event) => {
    const title = event.target.closest("#content .row-title[href]");
    if (title && !event.ctrlKey && !event.metaKey && !event.shiftKey) keep(WAY, { list: shown, opened: title.pathname, row: title.pathname, due: true });
  });

  // What a row led to leads back to the list as it was, its page included. htmx reads a link once, right after it is there.
  function markTheWay() {
    const way = kept(WAY), list = way && new URL(way.list, location.href), { pathname } = new URL(shown, location.href);
    if (!way || pathname === list.pathname) return;
    const back = [...document.querySelectorAll(".crumb a")].find((link) => link.pathname === list.pathname);
    const isOnIt = way.row === pathname || Boolean(back) && filterOf(back.search) === filterOf(list.search);
    if (isOnIt && back) back.href = way.list;
    keep(WAY, { ...way, row: isOnIt ? pathname : way.row, due: isOnIt });
  }

  // Whether this is the list that somebody comes back to: then the row that they left it by has the focus. One settling
  // may be told several times.
  let landedAt = null;
  function landed() {
    if (landedAt && landedAt === document.activeElement) return true;
    const way = kept(WAY);
    if (!way || new URL(shown, location.href).pathname !== new URL(way.list, location.href).pathname) return false;
    const row = way.due && [way.row, way.opened].map((path) => titles().find((title) => title.pathname === path)).find(Boolean);
    keep(WAY, { ...way, due: false });
    if (!row) return false;
    landedAt = row;
    row.focus({ preventScroll: true });
    // After htmx has shown the top of what it put there.
    setTimeout(() => row.closest(".row").scrollIntoView({ block: "center" }));
    return true;
  }

  // --- what was ticked in a list --------------------------------------------------------------------------------------
  // A tick is for what was shown: it names the version, and one that has changed since is not ticked again.
  const ticksAt = () => keptAs("ticks", shown);
  const boxes = () => [...document.querySelectorAll(".queue-form [name=item]")];
  const idOf = (item) => item.split(":")[0];

  function keepTicks() {
    const ticked = boxes().filter((box) => box.checked);
    keep(ticksAt(), ticked.length ? ticked.map((box) => box.value) : null);
    showTicks(ticked.length);
  }

  function putTicksBack() {
    if (!boxes().length) return;
    const ticked = kept(ticksAt()) ?? [];
    for (const box of boxes()) {
      if (ticked.includes(box.value)) box.checked = true;
      else if (ticked.some((item) => idOf(item) === idOf(box.value))) box.closest(".row").querySelector(".row-facts").append(byId("unticked").content.cloneNode(true));
    }
    keepTicks();
  }

  function showTicks(number) {
    const all = document.querySelector("[data-tick-all]");
    all.checked = number === boxes().length;
    all.indeterminate = number > 0 && !all.checked;
    document.querySelector("[data-ticked]").textContent = number ? `${number} ticked` : "";
    for (const place of document.querySelectorAll("[data-ticked-number]")) place.textContent = number ? ` ${number}` : "";
  }

  document.addEventListener("change", ({ target }) => {
    const all = target.closest?.("[data-tick-all]");
    if (all) for (const box of boxes()) box.checked = all.checked;
    if (all || target.matches?.(".queue-form [name=item]")) keepTicks();
  });

  // --- strips of tabs -------------------------------------------------------------------------------------------------
  function showCurrentTab() {
    for (const tab of document.querySelectorAll(".nav [aria-current], .tabs [aria-current]")) {
      const strip = tab.closest(".nav, .tabs");
      const [outer, inner] = [strip.getBoundingClientRect(), tab.getBoundingClientRect()];
      strip.scrollLeft += inner.left - outer.left - (outer.width - inner.width) / 2;
    }
  }

  // --- texts that scroll by themselves --------------------------------------------------------------------------------
  // What is cut has to be reached by whoever has no mouse, and not every browser sees to that.
  function reachCutTexts() {
    for (const text of document.querySelectorAll(".compare .statement, .sheet-frame")) {
      if (text.scrollHeight <= text.clientHeight && text.scrollWidth <= text.clientWidth) continue;
      text.tabIndex = 0;
      text.role = "group";
      text.ariaLabel = text.parentElement.querySelector("h2, h3, h4")?.textContent ?? "";
    }
  }
  document.addEventListener("toggle", reachCutTexts, true);
  addEventListener("resize", reachCutTexts);

  // A reason that was given before, taken up again: it can be changed before it is sent. What was typed stays.
  function fill(field, text) {
    const typed = field.value.trim(), offered = [...document.querySelectorAll("[data-fill]")].map((button) => button.value);
    field.value = !typed || offered.includes(typed) ? text : `${typed} ${text}`;
    field.dispatchEvent(new Event("input", { bubbles: true }));
    press(field);
  }

  // --- clicks ---------------------------------------------------------------------------------------------------------
  document.addEventListener("click", (event) => {
    const opener = event.target.closest("[data-dialog]");
    if (opener) { opener.closest("details")?.removeAttribute("open"); byId(opener.dataset.dialog)?.showModal(); }
    if (event.target.closest("[data-retry]")) retry();
    if (event.target.closest("[data-dismiss]")) event.target.closest(".notice").remove();
    const jump = event.target.closest("a[data-open]");
    const field = jump && byId(jump.hash.slice(1));
    if (field) { event.preventDefault(); press(field); }
    const again = event.target.closest("[data-fill]");
    if (again) fill(byId(again.dataset.fill), again.value);
    const offer = event.target.closest("[data-draft]");
    if (offer && event.target.closest("[data-draft-restore]")) restoreDraft(offer);
    if (offer && event.target.closest("[data-draft-drop]")) { forget(offer.dataset.draft); offer.remove(); }
    if (event.target instanceof HTMLDialogElement) event.target.close();
  });

  // --- keys -----------------------------------------------------------------------------------------------------------
  const switchedOn = () => document.querySelector("[aria-keyshortcuts]") !== null;
  const types = (element) => element.matches?.("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]");

  function pressedBy(key) {
    const named = [...document.querySelectorAll("[aria-keyshortcuts]")].filter((element) => element.getAttribute("aria-keyshortcuts") === key);
    if (key === "/") named.unshift(...document.querySelectorAll("#content form[role=search] [name=q]"));
    // What lies in a closed part of the page is reached by opening that part.
    return named.find((element) => shows(element) || element.closest("details:not([open])"));
  }

  function press(element) {
    const closed = element.closest("details:not([open])");
    if (types(element)) {
      closed?.setAttribute("open", "");
      element.focus();
      element.setSelectionRange?.(element.value.length, element.value.length);
    } else element.click();
  }

  function move(step) {
    const rows = [...document.querySelectorAll("#content .row-title")].filter(shows);
    if (!rows.length) return false;
    const at = rows.findIndex((row) => row.closest(".row") === document.activeElement.closest(".row"));
    const next = at < 0 ? (step > 0 ? 0 : rows.length - 1) : Math.min(Math.max(at + step, 0), rows.length - 1);
    rows[next].focus();
    rows[next].closest(".row").scrollIntoView({ block: "nearest" });
    return true;
  }

  // Where a form decides either way, a reason is what a rejection needs.
  function sentBy(field) {
    if (field.dataset.sends) return field.form.querySelector(`button[value="${field.dataset.sends}"]`);
    return field.closest("details, .decide")?.querySelector("button:not([type=button])");
  }

  const actions = {
    j: () => move(1),
    k: () => move(-1),
    x: () => document.activeElement.closest(".row")?.querySelector("[name=item]")?.click() ?? false,
    u: () => byId("undo")?.requestSubmit() ?? false,
  };

  document.addEventListener("keydown", (event) => {
    if (event.key === "Tab") return; // goes through what stands here, and types nothing
    const typedOn = isTypedOn(event);
    if (event.isComposing || document.querySelector("dialog[open]")) return;
    const { target, key } = event;
    if (types(target)) {
      if (key === "Escape") target.blur();
      else if (key === "Enter" && (event.ctrlKey || event.metaKey) && target.form) {
        event.preventDefault();
        const button = sentBy(target);
        if (!button?.disabled) send(target.form, button);
      }
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat && key !== "j" && key !== "k" || !switchedOn()) return;
    if (typedOn || underWay()) { event.preventDefault(); return; }
    const element = pressedBy(key);
    if (element) press(element);
    else if (!actions[key] || actions[key]() === false) return;
    event.preventDefault();
  });

  // Whoever went on through what was seen before, while this page was loading, was not heard: nobody listened yet.
  const loaded = window.navigation?.activation?.entry.url;
  if (loaded && addressOf(new URL(loaded)) !== here()) location.reload();

  offline();
  forgetWhatArrived();
  offerDrafts();
  // What was written before this came, on a slow line.
  for (const form of document.querySelectorAll("form[data-keep]")) keepTyped(form);
  showCurrentTab();
  reachCutTexts();
  putTicksBack();
  markTheWay();
  // Whoever has begun to write goes on there.
  if (document.activeElement === document.body && !landed()) goOnAt(whatIsAmiss());
  hasJustCome();
  fade();
})();
