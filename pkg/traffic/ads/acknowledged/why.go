// SPDX-License-Identifier: Apache-2.0

package acknowledged

import (
	"cmp"
	"strings"
	"time"
)

// why a proxy has not acknowledged the newest decision, as far as that is known.
func (q Question) why(w Wanted, k known, unheard []string) string {
	switch {
	case len(k.connected) > 0:
		return q.whyConnected(w, k.connected[0])
	case k.unheard != "":
		return "is connected to replica " + k.unheard + ", which is not heard"
	case len(unheard) > 0:
		return "is not seen; not heard: " + strings.Join(unheard, ", ")
	case !k.left.IsZero():
		return "is not connected since " + k.left.UTC().Format(time.RFC3339)
	}
	return w.never()
}

// never is about a proxy that may have had no stream at all. It holds the decision up
// until somebody looks after it, so what helps is said.
func (w Wanted) never() string {
	text := "is connected to no replica, and no replica remembers it: see the logs of its container plumbline-proxy, or delete the pod"
	if w.By != "" {
		text += ", or take the Service out of " + w.By
	}
	return text
}

// whyConnected is about the route with which the proxy is furthest behind.
func (q Question) whyConnected(w Wanted, record *Record) string {
	text, lowest := "", uint64(0)
	for _, name := range w.Routes {
		r, found := record.route(name)
		if found && r.Former.IsZero() && q.newest(w, r) {
			continue
		}
		if text == "" || r.Has.Sequence < lowest {
			text, lowest = q.whyRoute(record, name, r, found), r.Has.Sequence
		}
	}
	return cmp.Or(text, "has not acknowledged it yet")
}

// newest says that a route has the newest decision in it.
func (q Question) newest(w Wanted, r Route) bool {
	newest := q.Applied[len(q.Applied)-1]
	if w.Shared {
		return newest.Shared > 0 && r.Has.Sequence >= newest.Shared
	}
	return r.Has.Sequence >= newest.Sequence
}

func (q Question) whyRoute(record *Record, name string, r Route, found bool) string {
	switch {
	case r.Why != "":
		return r.Why
	case found && r.Former.IsZero():
		return "has not acknowledged it yet"
	case q.recent(record.Connected):
		return "has just been connected"
	}
	return "was not sent route " + name + ", or does not ask for it"
}
