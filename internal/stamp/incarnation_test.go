// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

var statefulSets = kube.Resource{GVK: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"}, Plural: "statefulsets"}

func (f *fixture) stampsOf(t *testing.T, resource kube.Resource, v Version) specguard.Stamps {
	t.Helper()
	now, err := f.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return f.Stamps(now, resource.GVK, v)
}

// A guard over a kind usually comes before the kind is registered. Until then each
// writer writes the annotation at will.
func TestStampsOfAKindThatIsRegisteredLaterAreBelievedFromThenOn(t *testing.T) {
	f := newFixture(t)
	f.Listing(t.Context(), deployments)
	f.Listing(t.Context(), statefulSets)
	if s := f.stampsOf(t, statefulSets, Version{"11", "11"}); s != (specguard.Stamps{}) {
		t.Errorf("before the kind is registered: %+v", s)
	}
	f.tick(t, time.Second)
	registered := f.clock.Now()
	f.server.change(registered, "", "deployments", "statefulsets") // version 11
	f.tick(t, 0)
	if s := f.stampsOf(t, statefulSets, Version{"11", "11"}); s.Written || s.Confirmed || !s.Since.Equal(registered.Add(enforceTime)) {
		t.Errorf("just registered: %+v", s)
	}
	f.tick(t, enforceTime)
	if s := f.stampsOf(t, statefulSets, Version{"12", "12"}); !s.Written || !s.Confirmed {
		t.Errorf("in force for the kind: %+v", s)
	}
	if s := f.stampsOf(t, statefulSets, Version{"11", ""}); s.Written {
		t.Errorf("written before it was in force for the kind: %+v", s)
	}
}

func TestAKindThatWasStampedBeforeIsStampedWithoutABreak(t *testing.T) {
	since := start.Add(-time.Hour).Add(enforceTime)
	for name, test := range map[string]struct {
		change  func(*server)
		written bool
		since   time.Time
	}{
		"when a kind is added":                      {func(s *server) { s.change(start, "", "deployments", "statefulsets") }, true, since},
		"not when the expressions are changed, too": {func(s *server) { s.change(start, "other", "deployments", "statefulsets") }, false, start.Add(enforceTime)},
		"not when two changes were made and one was seen": {func(s *server) {
			s.change(start, "", "statefulsets")
			s.change(start, "", "deployments", "statefulsets")
		}, false, start.Add(enforceTime)},
		"not when the policy was made anew": {func(s *server) { s.make("b", start) }, false, start.Add(enforceTime)},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.Listing(t.Context(), deployments)
			f.tick(t, 0)
			test.change(f.server)
			s := f.stamps(t, Version{"11", ""})
			if s.Written != test.written || !s.Since.Equal(test.since) {
				t.Errorf("written %t, since %s", s.Written, s.Since)
			}
		})
	}
}

func TestAKindThatIsTakenOutAndPutBackIsBelievedAnew(t *testing.T) {
	f := newFixture(t)
	f.Listing(t.Context(), deployments)
	f.tick(t, 0)
	f.server.change(f.clock.Now(), "", "statefulsets")
	if s := f.stamps(t, Version{"12", "12"}); s != (specguard.Stamps{}) {
		t.Errorf("taken out: %+v", s)
	}
	f.server.change(f.clock.Now(), "", "deployments", "statefulsets")
	if s := f.stamps(t, Version{"12", "12"}); s.Written || s.Confirmed {
		t.Errorf("put back: %+v", s)
	}
}

func TestAPolicyThatOnlyGotOtherLabelsIsTheSame(t *testing.T) {
	f := newFixture(t)
	f.Listing(t.Context(), deployments)
	before := f.stamps(t, Version{"11", "11"})
	f.server.changed = f.clock.Now()
	if s := f.stamps(t, Version{"11", "11"}); s != before {
		t.Errorf("%+v, before %+v", s, before)
	}
}
