// SPDX-License-Identifier: Apache-2.0

package acknowledged

import (
	"cmp"
	"slices"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
)

// Absence is how long a proxy that is between two streams counts with what it had
// acknowledged. Envoy comes back within four seconds, after a busy server has taken it a
// little later.
const Absence = 15 * time.Second

// Silence is how long, by default, a proxy whose pod or node is not Ready has to be unheard until
// it counts as gone.
const Silence = 2 * time.Minute

// Question is whether a decision about routes is in force.
type Question struct {
	Now time.Time
	// Applied are the decisions that were made, in ascending order, at least one. The
	// last one is asked about.
	Applied []Applied
	// Wanted are the proxies that have to acknowledge it.
	Wanted []Wanted
	// Replicas are all of them, whether they were heard or not.
	Replicas []Replica
	// ManagedSince is when proxies were first told of the service; zero if that was before
	// all connections that count. A connection that is older goes past the split.
	ManagedSince time.Time
	// OldConnections is how long after that pods are taken to have kept such connections.
	OldConnections time.Duration
	// Silence is how long a proxy has to be unheard that counts as gone; [Silence] if it is zero.
	Silence time.Duration
	// Since is from when on it is known which proxies are connected.
	Since time.Time
	// Newest are the versions of the routes as they are published now; one that is not there is
	// compared with no content.
	Newest map[string]ads.Version
}

// Applied is a decision.
type Applied struct {
	Sequence uint64
	At       time.Time
	// Shared is the sequence of routes that are about many services, from which on they
	// have the decision in them; 0 while that is not known.
	Shared uint64
}

// Wanted is a proxy that has to acknowledge what is decided.
type Wanted struct {
	Proxy
	// Routes are those that it has to acknowledge: one for each port of the service that it
	// may send requests to, or one that is about many services, which is Shared.
	Routes []string
	Shared bool
	// Since is when it began to run.
	Since time.Time
	// Starting says that its pod does not run yet. It need not acknowledge anything as long
	// as it has never been connected.
	Starting bool
	// Redirected says that its pod's connections come to it by their destination, so that
	// one which was opened before the proxy knew the service passes untouched.
	Redirected bool
	// Unfit says why its pod is not expected to answer; empty if the pod and its node are
	// Ready.
	Unfit string
	// By is what has it depend on the service, if that was written by whoever owns the
	// proxy; empty if it was not.
	By string
}

// Replica is one of those that serve proxies.
type Replica struct {
	Name string
	// Heard says that it is known what it knows. Otherwise Records are what was known
	// last.
	Heard   bool
	Records map[string]Record // by UID
}

// Judge says whether the newest decision is in force. It says nothing of variations.
func Judge(q Question) traffic.Observation {
	newest := q.Applied[len(q.Applied)-1]
	seen := traffic.Observation{Knowledge: traffic.Proven}
	for _, r := range q.Replicas {
		if !r.Heard {
			seen.Unheard = append(seen.Unheard, r.Name)
		}
	}
	slices.Sort(seen.Unheard)
	lowest, some := newest.Sequence, false
	for _, w := range q.Wanted {
		known := q.known(w.UID)
		if w.Starting && !known.ever {
			continue
		}
		if since, gone := q.gone(w, known, seen.Unheard); gone {
			seen.Gone = append(seen.Gone, traffic.OutOfSync{
				Name: w.Namespace + "/" + w.Pod, Has: q.has(w, known), Why: "counts as gone: " + w.Unfit, Since: since,
			})
			continue
		}
		seen.Wanted++
		has := q.has(w, known)
		if c := q.contradiction(w, known); c.why != "" {
			lowest, some = 0, true
			seen.Knowledge, seen.Ahead = traffic.Contradicted, max(seen.Ahead, c.ahead)
			seen.OutOfSync = append(seen.OutOfSync, traffic.OutOfSync{Name: w.Namespace + "/" + w.Pod, Has: has, Why: c.why, Since: q.since(w, has)})
			continue
		}
		if !some || has < lowest {
			lowest, some = has, true
		}
		if has >= newest.Sequence {
			seen.Acknowledged++
			continue
		}
		if seen.Knowledge == traffic.Proven {
			seen.Knowledge = traffic.Unknown
		}
		seen.OutOfSync = append(seen.OutOfSync, traffic.OutOfSync{
			Name: w.Namespace + "/" + w.Pod, Has: has, Why: q.why(w, known, seen.Unheard), Since: q.since(w, has),
		})
	}
	seen.Sequence = lowest
	if seen.NotYetRedirected = q.notYetRedirected(); len(seen.NotYetRedirected) > 0 {
		seen.Knowledge, seen.RedirectedAt = traffic.Unknown, q.redirectedAt()
	}
	if seen.Wanted == 0 {
		seen.Knowledge, seen.Sequence = traffic.NoProxies, 0
	}
	slices.SortFunc(seen.OutOfSync, byAge)
	slices.SortFunc(seen.Gone, byAge)
	return seen
}

// notYetRedirected names the proxies whose pods may have kept connections from before the
// service was managed. Only the pod's age tells: Envoy passes such a connection on as
// bytes, and counts it among those to all other destinations.
func (q Question) notYetRedirected() (names []string) {
	if q.ManagedSince.IsZero() || !q.Now.Before(q.redirectedAt()) {
		return nil
	}
	for _, w := range q.Wanted {
		if w.Redirected && w.Since.Before(q.ManagedSince) {
			names = append(names, w.Namespace+"/"+w.Pod)
		}
	}
	slices.Sort(names)
	return names
}

func (q Question) redirectedAt() time.Time { return q.ManagedSince.Add(q.OldConnections) }

// byAge has those first that wait longest.
func byAge(a, b traffic.OutOfSync) int {
	return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Name, b.Name))
}

// gone says since when a proxy is silent that counts as gone. While a replica is not
// heard the proxy may be connected there.
func (q Question) gone(w Wanted, k known, unheard []string) (since time.Time, gone bool) {
	if w.Unfit == "" || len(k.connected) > 0 || len(unheard) > 0 {
		return time.Time{}, false
	}
	if since = k.left; since.IsZero() {
		since = w.Since
		if q.Since.After(since) {
			since = q.Since
		}
	}
	return since, q.Now.Sub(since) >= cmp.Or(q.Silence, Silence)
}

// known is what is known about a proxy: where it is connected, or was last.
type known struct {
	// seen are its records at replicas that were heard, connected those of them whose
	// stream is open: more than one when one is dead and that is not known yet.
	seen, connected []*Record
	// left is when the last stream at one of them ended.
	left time.Time
	// unheard is the replica where it was last seen and that is not heard.
	unheard string
	// ever says that it has been seen, anywhere.
	ever bool
}

func (q Question) known(uid string) (k known) {
	for _, r := range q.Replicas {
		record, found := r.Records[uid]
		if !found {
			continue
		}
		k.ever = true
		open := record.Left.IsZero()
		if !r.Heard {
			if open {
				k.unheard = r.Name
			}
			continue
		}
		k.seen = append(k.seen, &record)
		if open {
			k.connected = append(k.connected, &record)
		} else if record.Left.After(k.left) {
			k.left = record.Left
		}
	}
	return k
}

// has is the sequence that a proxy has acknowledged of all routes.
func (q Question) has(w Wanted, k known) uint64 {
	var lowest uint64
	for i, route := range w.Routes {
		if has := q.hasOf(k, route); i == 0 || has < lowest {
			lowest = has
		}
	}
	if w.Shared {
		return Within(q.Applied, lowest)
	}
	return lowest
}

// Within is the last decision that is in a route about many services with a sequence; 0 if it is
// not known.
func Within(applied []Applied, sequence uint64) uint64 {
	for _, a := range slices.Backward(applied) {
		if a.Shared > 0 && sequence >= a.Shared {
			return a.Sequence
		}
	}
	return 0
}

// hasOf is what it has acknowledged of one route. Of two streams that seem to be open the lower
// counts.
func (q Question) hasOf(k known, route string) uint64 {
	held := q.held(k, route)
	if len(held) == 0 {
		return 0
	}
	return slices.MinFunc(held, func(a, b ads.Version) int { return cmp.Compare(a.Sequence, b.Sequence) }).Sequence
}

// held are the versions of one route that it has acknowledged: on its stream, or else a moment ago
// on one that has ended.
func (q Question) held(k known, route string) []ads.Version {
	var now, before []ads.Version
	for _, record := range k.seen {
		r, found := record.route(route)
		switch {
		case !found || r.Has.Hash == "":
		case r.Former.IsZero():
			now = append(now, r.Has)
		case q.recent(r.Former):
			before = append(before, r.Has)
		}
	}
	if len(now) > 0 {
		return now
	}
	return before
}

func (q Question) recent(at time.Time) bool { return q.Now.Sub(at) < Absence }

// since is when a proxy was told what it has not acknowledged, or should have been.
func (q Question) since(w Wanted, has uint64) time.Time {
	i := slices.IndexFunc(q.Applied, func(a Applied) bool { return a.Sequence > has })
	if i < 0 { // it contradicts the newest
		i = len(q.Applied) - 1
	}
	if at := q.Applied[i].At; at.After(w.Since) {
		return at
	}
	return w.Since
}
