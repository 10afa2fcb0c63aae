// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/plumbline-dev/plumbline/internal/httpapi/events"
)

// hearing is the part of a feed that one stream hears.
type hearing interface {
	// subscribe returns the position behind an event, see feed.subscribe.
	subscribe(last *events.ID) (at position, first []events.Frame)
	// hear returns the events behind a position, and moves the position. changed is closed with the next change, and nil where
	// further events may wait behind these. failure is why the stream ends.
	hear(ctx context.Context, at *position) (news []events.Frame, changed <-chan struct{}, failure error)
	// wake tells when to hear again without a change.
	wake() <-chan time.Time
	leave()
}

// whole hears each event of a feed: the feed is that of the caller.
type whole struct{ *feed }

func (w whole) hear(_ context.Context, at *position) (news []events.Frame, changed <-chan struct{}, failure error) {
	return w.next(at)
}

func (whole) wake() <-chan time.Time { return nil }
func (whole) leave()                 {}

// reviewEvery is how often a stream asks anew for the rights of its caller. The answers may be ten seconds old, so a right that
// was taken away ends within 30 seconds.
const reviewEvery = 15 * time.Second

// filtered hears what the caller may watch of a feed of all objects.
type filtered struct {
	*feed
	caller    Hearer
	namespace string
	// granted are the answers about rights since the last review.
	granted  map[scope]bool
	reviewed time.Time
	// notices are those that the stream has not got yet.
	notices []events.Frame
	// A caller whose rights cannot be asked for hears no event before heldUntil; pause is how long that was last.
	heldUntil time.Time
	pause     time.Duration
	timer     *time.Timer
}

// scope is where a right is: a kind in one namespace, or in all if none is named.
type scope struct{ kind, namespace string }

// admit returns what the caller of a context may hear. Without any right it returns the first refusal.
func admit(ctx context.Context, f *feed, cluster Shared, namespace string) (hearing, error) {
	caller, err := cluster.Hearer(ctx)
	if err != nil {
		return nil, err
	}
	h := &filtered{feed: f, caller: caller, namespace: namespace, granted: map[scope]bool{}, reviewed: time.Now()}
	for _, k := range h.kinds() {
		withheld, err := h.ask(ctx, k, namespace)
		switch {
		case err != nil:
			return nil, err
		case withheld != nil:
			h.notices = append(h.notices, h.narrowed(namespace, withheld))
		}
	}
	if !h.hears() {
		if err := h.look(ctx); err != nil {
			return nil, err
		}
	}
	h.timer = time.NewTimer(0)
	return h, nil
}

// kinds are those that the stream can have events of.
func (h *filtered) kinds() (kinds []*followed) {
	for i := range followedKinds {
		if k := &followedKinds[i]; !k.ofCluster || h.namespace == "" {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

// ask asks for a right, and notes the answer; withheld is why the caller does not have it.
func (h *filtered) ask(ctx context.Context, k *followed, namespace string) (withheld, err error) {
	err = h.caller.MayWatch(ctx, k.newList(), namespace)
	if err != nil {
		err = &requestError{verb: "watch", kind: k.kind, namespace: namespace, err: err}
	}
	withheld, err = withhold(err)
	if err == nil {
		h.granted[scope{k.kind, namespace}] = withheld == nil
	}
	return withheld, err
}

// hears tells whether the caller has a right.
func (h *filtered) hears() bool {
	for _, granted := range h.granted {
		if granted {
			return true
		}
	}
	return false
}

// look looks for a right anywhere, and returns the first refusal without one.
func (h *filtered) look(ctx context.Context) error {
	var refusal error
	for _, k := range h.kinds() {
		withheld, err := h.ask(ctx, k, h.namespace)
		if err != nil || withheld == nil {
			return err
		}
		if refusal == nil {
			refusal = withheld
		}
		if k.ofCluster || h.namespace != "" || kindIsMissing(withheld) {
			continue
		}
		found, err := h.caller.FindNamespace(ctx, k.newList())
		if err != nil {
			return &requestError{verb: "watch", kind: k.kind, err: err}
		}
		if found != "" {
			h.granted[scope{k.kind, found}] = true
			return nil
		}
	}
	return refusal
}

// review asks anew whose the token is, and for each right that the caller had. A right that is gone is told.
func (h *filtered) review(ctx context.Context) error {
	if err := h.caller.Renew(ctx); err != nil {
		return err
	}
	before, notices := h.granted, []events.Frame(nil)
	h.granted = map[scope]bool{}
	for _, of := range slices.SortedFunc(maps.Keys(before), func(x, y scope) int {
		return cmp.Or(cmp.Compare(x.kind, y.kind), cmp.Compare(x.namespace, y.namespace))
	}) {
		if !before[of] {
			continue
		}
		withheld, err := h.ask(ctx, kindNamed(of.kind), of.namespace)
		switch {
		case err != nil:
			h.granted = before // no event is told before the next review
			return err
		case withheld != nil:
			notices = append(notices, h.narrowed(of.namespace, withheld))
		}
	}
	h.notices = append(h.notices, notices...)
	if !h.hears() {
		if err := h.look(ctx); err != nil {
			return err
		}
	}
	h.reviewed = time.Now()
	return nil
}

func kindNamed(kind string) *followed {
	return &followedKinds[slices.IndexFunc(followedKinds, func(k followed) bool { return k.kind == kind })]
}

func (h *filtered) hear(ctx context.Context, at *position) (news []events.Frame, changed <-chan struct{}, failure error) {
	defer h.setTimer()
	now := time.Now()
	switch until := h.caller.Until(); {
	case !until.IsZero() && !now.Before(until):
		return nil, nil, apierrors.NewUnauthorized("the token has ended")
	case now.Before(h.heldUntil):
		return nil, nil, nil
	}
	var err error
	if now.Sub(h.reviewed) >= reviewEvery {
		err = h.review(ctx)
	}
	if err == nil {
		news, changed, err = h.readAllowed(ctx, at)
	}
	news, h.notices = append(h.notices, news...), nil
	withheld, failed := withhold(err)
	switch {
	case err == nil:
		h.pause = 0
	case withheld != nil, apierrors.IsUnauthorized(err):
		return news, nil, err
	case failed != nil: // the right to hear cannot be asked for, so the events wait in the ring
		h.pause = min(pingInterval, max(firstPause, 2*h.pause))
		h.heldUntil = now.Add(h.pause)
	}
	return news, changed, nil
}

// readAllowed returns the events behind a position that the caller may hear. With an error, the position is before the event
// whose right could not be asked for.
func (h *filtered) readAllowed(ctx context.Context, at *position) (news []events.Frame, changed <-chan struct{}, err error) {
	for {
		read, next, lapped, changed := h.read(at.place)
		if lapped {
			at.place = next
			return []events.Frame{h.resync(h.namespace)}, nil, nil
		}
		for i := range read {
			allowed, err := h.allows(ctx, &read[i])
			if err != nil {
				return news, nil, err
			}
			at.place++
			if allowed {
				news = append(news, read[i].Frame)
			}
		}
		switch {
		case len(read) < batch:
			return news, changed, nil
		case len(news) > 0: // further events may wait
			return news, nil, nil
		}
	}
}

// allows tells whether the caller may hear an event.
func (h *filtered) allows(ctx context.Context, m *events.Message) (bool, error) {
	if h.namespace != "" && h.namespace != m.Namespace {
		return false, nil
	}
	if h.granted[scope{m.Kind, ""}] {
		return true, nil
	}
	if granted, known := h.granted[scope{m.Kind, m.Namespace}]; known {
		return granted, nil
	}
	withheld, err := h.ask(ctx, kindNamed(m.Kind), m.Namespace)
	return err == nil && withheld == nil, err
}

func (h *filtered) wake() <-chan time.Time { return h.timer.C }

// setTimer sets the timer to the next review, to the end of the token, or to the end of the pause.
func (h *filtered) setTimer() {
	next := h.reviewed.Add(reviewEvery)
	if time.Now().Before(h.heldUntil) {
		next = h.heldUntil
	}
	if until := h.caller.Until(); !until.IsZero() && until.Before(next) {
		next = until
	}
	h.timer.Reset(max(0, time.Until(next)))
}

func (h *filtered) leave() { h.timer.Stop() }
