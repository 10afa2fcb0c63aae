// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

var (
	deployments = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	epoch       = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	web         = nsName{"shop", "web"}
)

func version(uid string, rv int, content string) *Object {
	return &Object{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: web.namespace, Name: web.name, UID: types.UID(uid), ResourceVersion: fmt.Sprint(rv),
		},
		FullHash: canon.Hash(content),
		body:     newBlob([]byte(content)),
	}
}

type heard struct{ changed, overflown, ready int }

func newTestStore() (*store, *heard) {
	h := &heard{}
	s := newStore(deployments, func() time.Time { return epoch }, newQuota(0),
		func(Key) { h.changed++ }, func(Key) { h.overflown++ }, func(schema.GroupVersionKind) { h.ready++ })
	return s, h
}

// told writes a transition as text.
func told(t Transition) string {
	name := func(o *Object) string {
		if o == nil {
			return "-"
		}
		return string(o.FullHash)
	}
	arrow := " ~> " // something may lie between
	if t.Contiguous {
		arrow = " -> "
	}
	return name(t.Prev) + arrow + name(t.Next)
}

func toldAll(v View) []string {
	var out []string
	for _, t := range v.Pending {
		out = append(out, told(t))
	}
	return out
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestTransitions(t *testing.T) {
	tests := map[string]struct {
		do   func(t *testing.T, s *store)
		want []string
	}{
		"the first list has no history": {
			do: func(t *testing.T, s *store) {
				must(t, s.Replace([]any{version("u", 1, "a")}, "1"))
			},
		},
		"each write after the list is seen with the version before": {
			do: func(t *testing.T, s *store) {
				must(t, s.Replace([]any{version("u", 1, "a")}, "1"))
				must(t, s.Update(version("u", 2, "b")))
				must(t, s.Update(version("u", 3, "c")))
			},
			want: []string{"a -> b", "b -> c"},
		},
		"a status write between two writes hides nothing and is not told": {
			do: func(t *testing.T, s *store) {
				must(t, s.Replace([]any{version("u", 1, "a")}, "1"))
				must(t, s.Update(version("u", 2, "a")))
				must(t, s.Update(version("u", 3, "b")))
			},
			want: []string{"a -> b"},
		},
		"a creation has nothing before it": {
			do: func(t *testing.T, s *store) {
				must(t, s.Replace(nil, "1"))
				must(t, s.Add(version("u", 2, "a")))
			},
			want: []string{"- -> a"},
		},
		"a deletion carries the last version": {
			do: func(t *testing.T, s *store) {
				must(t, s.Replace([]any{version("u", 1, "a")}, "1"))
				must(t, s.Delete(version("u", 2, "a")))
			},
			want: []string{"a -> -"},
		},
		"delete and recreate are two steps": {
			do: func(t *testing.T, s *store) {
				must(t, s.Replace([]any{version("u", 1, "a")}, "1"))
				must(t, s.Delete(version("u", 2, "a")))
				must(t, s.Add(version("v", 3, "b")))
			},
			want: []string{"a -> -", "- -> b"},
		},
		"a relist that finds the same version tells nothing": {
			do: func(t *testing.T, s *store) {
				must(t, s.Replace([]any{version("u", 1, "a")}, "1"))
				must(t, s.Replace([]any{version("u", 1, "a")}, "5"))
				must(t, s.Update(version("u", 6, "b")))
			},
			want: []string{"a -> b"},
		},
		"a relist that finds another version may have missed some": {
			do: func(t *testing.T, s *store) {
				must(t, s.Replace([]any{version("u", 1, "a")}, "1"))
				must(t, s.Replace([]any{version("u", 4, "b")}, "5"))
			},
			want: []string{"a ~> b"},
		},
		"a relist that finds only a status write tells nothing": {
			do: func(t *testing.T, s *store) {
				must(t, s.Replace([]any{version("u", 1, "a")}, "1"))
				must(t, s.Replace([]any{version("u", 4, "a")}, "5"))
				must(t, s.Update(version("u", 6, "b")))
			},
			want: []string{"a -> b"},
		},
		"a relist that misses an object tells that it is gone": {
			do: func(t *testing.T, s *store) {
				must(t, s.Replace([]any{version("u", 1, "a")}, "1"))
				must(t, s.Replace(nil, "5"))
			},
			want: []string{"a ~> -"},
		},
		"a relist that finds a new object cannot tell who made it": {
			do: func(t *testing.T, s *store) {
				must(t, s.Replace(nil, "1"))
				must(t, s.Replace([]any{version("u", 4, "a")}, "5"))
			},
			want: []string{"- ~> a"},
		},
		"another uid without a deletion between is not one write": {
			do: func(t *testing.T, s *store) {
				must(t, s.Replace([]any{version("u", 1, "a")}, "1"))
				must(t, s.Update(version("v", 2, "b")))
			},
			want: []string{"a ~> b"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s, _ := newTestStore()
			tc.do(t, s)
			if diff := cmp.Diff(tc.want, toldAll(s.view(web))); diff != "" {
				t.Errorf("transitions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnknownIsNotAbsent(t *testing.T) {
	s, h := newTestStore()
	if v := s.view(web); v.Unknown == nil {
		t.Error("a kind that was never listed says that an object is absent")
	}
	s.report(errors.New("forbidden"))
	if v := s.view(web); v.Unknown == nil || s.health().FailingSince.IsZero() {
		t.Error("a kind that may not be listed says that an object is absent")
	}
	must(t, s.Replace(nil, "1"))
	if v := s.view(web); v.Unknown != nil {
		t.Errorf("a listed kind is unknown: %v", v.Unknown)
	}
	must(t, s.Replace(nil, "2"))
	if h.ready != 1 {
		t.Errorf("it was told %d times that the kind is listed, want once", h.ready)
	}
}

func TestOverflowKeepsTheOldestAndMergesTheNewest(t *testing.T) {
	s, h := newTestStore()
	must(t, s.Replace([]any{version("u", 1, "v0")}, "1"))
	for i := range MaxPending + 5 {
		must(t, s.Update(version("u", i+2, fmt.Sprintf("v%d", i+1))))
	}
	got := toldAll(s.view(web))
	if len(got) != MaxPending || got[0] != "v0 -> v1" {
		t.Fatalf("%d transitions, the first %q", len(got), got[0])
	}
	want := fmt.Sprintf("v%d ~> v%d", MaxPending-1, MaxPending+5)
	if got[MaxPending-1] != want {
		t.Errorf("the last transition is %q, want %q", got[MaxPending-1], want)
	}
	if h.overflown != 5 {
		t.Errorf("%d overflows were counted, want 5", h.overflown)
	}
}

func TestSettlingWhatWasMergedMeanwhileLosesNothing(t *testing.T) {
	s, _ := newTestStore()
	must(t, s.Replace([]any{version("u", 1, "v0")}, "1"))
	for i := range MaxPending {
		must(t, s.Update(version("u", i+2, fmt.Sprintf("v%d", i+1))))
	}
	seen := s.view(web)
	must(t, s.Update(version("u", 100, "late")))
	s.settle(web, seen.Pending)
	want := []string{fmt.Sprintf("v%d ~> late", MaxPending)}
	if diff := cmp.Diff(want, toldAll(s.view(web))); diff != "" {
		t.Errorf("transitions (-want +got):\n%s", diff)
	}
}

func TestSettlingADeletionForgetsTheObject(t *testing.T) {
	s, _ := newTestStore()
	must(t, s.Replace([]any{version("u", 1, "a")}, "1"))
	must(t, s.Delete(version("u", 2, "a")))
	s.settle(web, s.view(web).Pending)
	if n := len(s.ids()); n != 0 {
		t.Errorf("%d objects are remembered", n)
	}
}

// TestHistoryIsTrue runs random lives of one object past the store and compares
// what it tells with what happened: every contiguous transition is one step of
// the true history, in order, and following all transitions ends at the truth.
func TestHistoryIsTrue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, _ := newTestStore()
		var truth []*Object // every version there was, nil for absent
		truth = append(truth, nil)
		rv, uid := 1, 0
		at := "-" // what the consumer believes, by following transitions
		if err := s.Replace(nil, "1"); err != nil {
			t.Fatal(err)
		}
		settle := func() {
			v := s.view(web)
			n := rapid.IntRange(0, len(v.Pending)).Draw(t, "settled")
			for _, tr := range v.Pending[:n] {
				at = follow(t, at, tr, truth)
			}
			s.settle(web, v.Pending[:n])
		}
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			current := truth[len(truth)-1]
			rv++
			switch action := rapid.SampledFrom([]string{"write", "write", "status", "delete", "relist", "settle"}).Draw(t, "action"); {
			case action == "settle":
				settle()
			case current == nil && action != "relist":
				uid++
				next := version(fmt.Sprint("u", uid), rv, fmt.Sprint("c", rv))
				truth = append(truth, next)
				mustRapid(t, s.Add(next))
			case action == "write":
				next := version(string(current.UID), rv, fmt.Sprint("c", rv))
				truth = append(truth, next)
				mustRapid(t, s.Update(next))
			case action == "status":
				next := version(string(current.UID), rv, string(current.FullHash))
				truth = append(truth, next)
				mustRapid(t, s.Update(next))
			case action == "delete":
				last := version(string(current.UID), rv, string(current.FullHash))
				truth = append(truth, nil)
				mustRapid(t, s.Delete(last))
			case action == "relist":
				// Writes that the watch never delivered.
				for range rapid.IntRange(0, 3).Draw(t, "missed") {
					rv++
					truth = append(truth, version(fmt.Sprint("u", uid), rv, fmt.Sprint("c", rv)))
				}
				var list []any
				if last := truth[len(truth)-1]; last != nil {
					list = append(list, last)
				}
				mustRapid(t, s.Replace(list, fmt.Sprint(rv)))
			}
		}
		v := s.view(web)
		for _, tr := range v.Pending {
			at = follow(t, at, tr, truth)
		}
		if want := name(truth[len(truth)-1]); at != want {
			t.Fatalf("following all transitions ends at %s, the truth is %s", at, want)
		}
	})
}

func mustRapid(t *rapid.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func name(o *Object) string {
	if o == nil {
		return "-"
	}
	return string(o.FullHash)
}

// follow checks one transition against the truth and takes it.
func follow(t *rapid.T, at string, tr Transition, truth []*Object) string {
	t.Helper()
	if !tr.Contiguous {
		return name(tr.Next)
	}
	if name(tr.Prev) != at {
		t.Fatalf("a contiguous transition starts at %s, we are at %s", name(tr.Prev), at)
	}
	for i := 1; i < len(truth); i++ {
		if name(truth[i-1]) == name(tr.Prev) && name(truth[i]) == name(tr.Next) {
			return name(tr.Next)
		}
	}
	t.Fatalf("%s never happened in one step", told(tr))
	return ""
}

func TestTheWatchTellsHowFarItIs(t *testing.T) {
	for name, test := range map[string]struct {
		do   func(s *store) error
		want string
	}{
		"nothing was listed": {func(*store) error { return nil }, ""},
		"a list":             {func(s *store) error { return s.Replace(nil, "5") }, "5"},
		"a write":            {func(s *store) error { return s.Update(version("u", 7, "b")) }, "7"},
		"a write of metadata alone": {func(s *store) error {
			return errors.Join(s.Update(version("u", 7, "b")), s.Update(version("u", 8, "b")))
		}, "8"},
		"a deletion": {func(s *store) error { return s.Delete(version("u", 9, "b")) }, "9"},
		"a bookmark": {func(s *store) error { return s.Bookmark("11") }, "11"},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := newTestStore()
			must(t, test.do(s))
			if got := s.health().Progress; got != test.want {
				t.Errorf("the kind is at %q, want %q", got, test.want)
			}
			must(t, s.Replace([]any{version("u", 12, "b")}, "13"))
			for _, id := range []nsName{web, {"shop", "gone"}} {
				if got := s.view(id).Progress; got != "13" {
					t.Errorf("%v is known as of %q", id, got)
				}
			}
		})
	}
}

// A status is written often. Its versions have one copy of the metadata, and a write of the metadata has a copy of its own.
func TestVersionsOfEqualContentHaveOneCopyOfTheirMetadata(t *testing.T) {
	annotated := func(rv int, stamp string) *Object {
		o := version("u", rv, "a")
		o.Annotations, o.Labels = map[string]string{"stamp": stamp}, map[string]string{"app": "web"}
		return o
	}
	s, _ := newTestStore()
	first, second, third := annotated(1, "alice"), annotated(2, "alice"), annotated(3, "bob")
	for i, o := range []*Object{first, second, third} {
		if moved, _ := s.advance(web, o, true); moved != (i != 1) {
			t.Errorf("version %d moved the object: %t", i+1, moved)
		}
	}
	one := func(x, y map[string]string) bool { return reflect.ValueOf(x).Pointer() == reflect.ValueOf(y).Pointer() }
	if !one(first.Annotations, second.Annotations) || !one(first.Labels, second.Labels) || second.ResourceVersion != "2" {
		t.Errorf("the second version has a copy of its own: %+v", second.ObjectMeta)
	}
	if one(second.Annotations, third.Annotations) || third.Annotations["stamp"] != "bob" {
		t.Errorf("the third version has the metadata of before: %+v", third.ObjectMeta)
	}
}
