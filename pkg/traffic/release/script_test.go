// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/release"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// story is one release over time, as a script tells it. What is in force goes through
// the status each time, as between two leaders.
type story struct {
	release v1alpha1.ABRelease
	ready   map[string]int
	floor   uint64
	now     time.Time
}

// TestStories runs the scripts, in which commands are spec (YAML), ready, unknown,
// floor and at. Rewrite them with UPDATE_GOLDEN=1.
func TestStories(t *testing.T) {
	if golden.Updates() {
		if err := flag.Set("rewrite", "true"); err != nil {
			t.Fatal(err)
		}
	}
	datadriven.Walk(t, "testdata/stories", func(t *testing.T, path string) {
		s := &story{now: noon}
		s.release.ObjectMeta = metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u1", CreationTimestamp: metav1.NewTime(noon)}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return s.tell(t, d) })
	})
}

func (s *story) tell(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "spec":
		s.release.Generation++
		s.release.Spec = v1alpha1.ABReleaseSpec{}
		if err := yaml.UnmarshalStrict([]byte(d.Input), &s.release.Spec); err != nil {
			t.Fatal(err)
		}
	case "ready":
		s.ready = map[string]int{}
		for _, arg := range d.CmdArgs {
			var n int
			arg.Scan(t, 0, &n)
			s.ready[arg.Key] = n
		}
	case "unknown":
		s.ready = nil
	case "floor":
		if _, err := fmt.Sscan(d.CmdArgs[0].Key, &s.floor); err != nil {
			t.Fatal(err)
		}
	case "at":
		after, err := time.ParseDuration(d.CmdArgs[0].Key)
		if err != nil {
			t.Fatal(err)
		}
		s.now = noon.Add(after)
	default:
		t.Fatalf("no command %s", d.Cmd)
	}
	return s.decide(t)
}

func (s *story) decide(t *testing.T) string {
	facts := release.Facts{Before: release.StateOf(&s.release), Ready: s.ready, Floor: s.floor, Now: s.now}
	var out strings.Builder
	terms, err := release.TermsOf(&s.release)
	if err == nil {
		facts.Terms = &terms
	} else {
		fmt.Fprintln(&out, "invalid:", err)
	}
	d := release.Decide(facts)
	d.After.Write(&s.release.Status)
	status := &s.release.Status
	if status.Effective == nil {
		return out.String() + "nothing is in force\n"
	}
	fmt.Fprintf(&out, "sequence %d generation %d: %s\n", status.Effective.Sequence, status.Effective.Generation, status.Split)
	for _, e := range d.Events {
		fmt.Fprintf(&out, "%s: %s\n", e.Reason, e.Message)
	}
	if !d.Again.IsZero() {
		fmt.Fprintf(&out, "again at %s\n", d.Again.Sub(noon))
	}
	facts.Before = release.StateOf(&s.release)
	if twice := release.Decide(facts); twice.Grew || len(twice.Events) > 0 {
		t.Errorf("the same facts twice: sequence %d, events %v", twice.After.Split.Sequence, twice.Events)
	}
	return out.String()
}
