// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"cmp"
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Cause is a property that the drift of many objects may have in common.
type Cause struct {
	// Path that was changed, with "*" for the keys of list elements, because the
	// containers of two objects have different names.
	Path string
	// User that changed it; empty where that is not proven.
	User string
}

func (c Cause) compare(other Cause) int {
	return cmp.Or(cmp.Compare(c.Path, other.Path), cmp.Compare(c.User, other.User))
}

// Causes of the drift of one object, each with the time of its newest finding.
type Causes map[Cause]time.Time

// CausesOf reads findings.
func CausesOf(findings []v1alpha1.Finding) Causes {
	causes := make(Causes, len(findings))
	for i := range findings {
		f := &findings[i]
		cause := Cause{Path: withoutKeys(f.Path)}
		if f.Actor.Class != v1alpha1.ActorUnknown {
			cause.User = f.Actor.User
		}
		if seen, known := causes[cause]; !known || f.FirstSeenTime.After(seen) {
			causes[cause] = f.FirstSeenTime.Time
		}
	}
	return causes
}

// withoutKeys writes "*" for the keys of list elements. A key of a map that begins
// with a bracket is escaped.
func withoutKeys(path string) string {
	if !strings.Contains(path, "/[") {
		return path
	}
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		if strings.HasPrefix(segment, "[") {
			segments[i] = "*"
		}
	}
	return strings.Join(segments, "/")
}

// Drifting is one object that drifts.
type Drifting struct {
	Namespace string
	// FirstSeen is the beginning of the drift.
	FirstSeen time.Time
	Causes    Causes
}

// Population counts the objects of one guard for mass drift. Objects that were
// never authorized do not belong to it: a tenant creates as many as the quota
// allows, and nothing is put back there.
type Population struct {
	// Objects counts them by namespace.
	Objects map[string]int
	// Drifting lists the ones that drift.
	Drifting []Drifting
}

// Add counts one guarded object.
func (p *Population) Add(namespace string, status *v1alpha1.BaselineStatus) {
	for i := range status.Findings {
		if status.Findings[i].Class == v1alpha1.ClassObjectUnexpected {
			return
		}
	}
	if p.Objects == nil {
		p.Objects = map[string]int{}
	}
	p.Objects[namespace]++
	if status.State != v1alpha1.StateDrifted && status.State != v1alpha1.StateMissing {
		return
	}
	d := Drifting{Namespace: namespace, Causes: CausesOf(status.Findings)}
	if status.FirstSeenTime != nil {
		d.FirstSeen = status.FirstSeenTime.Time
	}
	p.Drifting = append(p.Drifting, d)
}

func (p *Population) total() (objects int) {
	for _, n := range p.Objects {
		objects += n
	}
	return objects
}

// byNamespace lists the beginnings of the drift of each namespace.
func (p *Population) byNamespace() map[string][]time.Time {
	seen := map[string][]time.Time{}
	for i := range p.Drifting {
		d := &p.Drifting[i]
		seen[d.Namespace] = append(seen[d.Namespace], d.FirstSeen)
	}
	return seen
}

// byCause lists the times of the findings of each cause, by namespace.
func (p *Population) byCause() map[Cause]map[string][]time.Time {
	seen := map[Cause]map[string][]time.Time{}
	for i := range p.Drifting {
		d := &p.Drifting[i]
		for cause, at := range d.Causes {
			if seen[cause] == nil {
				seen[cause] = map[string][]time.Time{}
			}
			seen[cause][d.Namespace] = append(seen[cause][d.Namespace], at)
		}
	}
	return seen
}

// isCommon tells whether a cause has its share of all objects, and of the rest
// when any one namespace is left out: no namespace decides for the others.
func (p *Population) isCommon(s share, objects int, places map[string][]time.Time, from time.Time) bool {
	drifted := 0
	counts := make(map[string]int, len(places))
	for namespace, seen := range places {
		counts[namespace] = countFrom(seen, from)
		drifted += counts[namespace]
	}
	if !s.reached(objects, drifted) {
		return false
	}
	for namespace, n := range counts {
		if !s.reached(objects-p.Objects[namespace], drifted-n) {
			return false
		}
	}
	return true
}

// countFrom counts the times that are not before from.
func countFrom(times []time.Time, from time.Time) (n int) {
	for _, t := range times {
		if !t.Before(from) {
			n++
		}
	}
	return n
}
