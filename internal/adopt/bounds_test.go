// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// manyFields owns n members of the spec.
func manyFields(n int) string {
	fields := make([]string, n)
	for i := range fields {
		fields[i] = fmt.Sprintf(`"f:m%03d":{}`, i)
	}
	return `{"f:spec":{` + strings.Join(fields, ",") + `}}`
}

func TestReport_JudgesAWriteOfMoreFieldsThanItKeeps(t *testing.T) {
	expectAll := func(q *Question) {
		q.Draft.Spec.ExpectedWriters = []v1alpha1.ExpectedWriter{{
			Name: "all", Paths: []string{"/spec"}, Writers: v1alpha1.Writers{Users: []string{"operator"}},
		}}
	}
	cases := map[string]struct {
		question Question
		user     string
		paths    int
		total    int
	}{
		"by somebody unknown all of it is drift":                 {question(), "alice", maxPaths, 100},
		"an expectation is not believed of fields that are gone": {question(expectAll), "operator", 0, 100 - maxPaths},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := survey(t, tc.question, Exists, object("shop", "web", stamped(tc.user), written("m", hour, manyFields(100))))
			if len(r.Drift) != 1 || len(r.Drift[0].Paths) != tc.paths || r.Drift[0].PathsTotal != tc.total {
				t.Errorf("drift: %+v", r.Drift)
			}
		})
	}
	trusted := survey(t, question(), Exists, object("shop", "web", stamped(ci), written("m", hour, manyFields(100))))
	if trusted.Writes != (WriteCounts{Total: 1, Authorized: 1}) {
		t.Errorf("by a trusted writer: %+v", trusted.Writes)
	}
}

func TestProposal_KeepsTheBoundsOfTheAPI(t *testing.T) {
	full := question(hpa("web"), func(q *Question) {
		for i := range maxAccounts {
			q.Draft.Spec.TrustedWriters.ServiceAccounts = append(q.Draft.Spec.TrustedWriters.ServiceAccounts, account("a", fmt.Sprintf("n%02d", i)))
		}
		for i := range maxExpected {
			q.Draft.Spec.ExpectedWriters = append(q.Draft.Spec.ExpectedWriters, v1alpha1.ExpectedWriter{
				Name: fmt.Sprintf("e%02d", i), Paths: []string{"/spec/paused"}, Writers: v1alpha1.Writers{Users: []string{"x"}},
			})
		}
	})
	r := survey(t, full, Exists, object("shop", "web", stamped(ci), written("m", hour, image)))
	got := summarize(r)
	if len(got.Trusted) != maxAccounts || len(specOf(r).ExpectedWriters) != maxExpected {
		t.Errorf("%d accounts and %d expected writers", len(got.Trusted), len(specOf(r).ExpectedWriters))
	}
	want := []string{ci, "system:serviceaccount:kube-system:horizontal-pod-autoscaler"}
	if diff := cmp.Diff(want, got.Undecided); diff != "" {
		t.Errorf("undecided (-want +got):\n%s", diff)
	}
}

func TestProposal_OfAnExistingGuardKeepsItsModeAndAddsBesideItsRules(t *testing.T) {
	until := metav1.NewTime(now.Add(time.Hour))
	q := question(hpa("web"), selecting("shop"), func(q *Question) {
		q.Draft.Existing = true
		q.Draft.Spec.Mode = v1alpha1.GuardModeWarn
		q.Draft.Spec.Suspend = &v1alpha1.Suspension{Reason: "quiet", EndTime: until}
		q.Draft.Spec.TrustedWriters.Users = []string{"release-bot"}
		q.Draft.Spec.ExpectedWriters = []v1alpha1.ExpectedWriter{{Name: "autoscaler", Paths: []string{"/spec/paused"}, Writers: v1alpha1.Writers{Users: []string{"x"}}}}
	})
	r := survey(t, q, Exists, object("shop", "web", stamped("release-bot"), written("helm", hour, image)), object("shop", "new", stamped(ci), written("m", hour, image)))
	spec := specOf(r)
	if spec.Mode != v1alpha1.GuardModeWarn || spec.Suspend == nil || len(r.Drift) > 0 {
		t.Errorf("mode %s, suspension %v, drift %v", spec.Mode, spec.Suspend, r.Drift)
	}
	want := summary{
		Trusted:  []string{"ci/deployer"},
		Expected: []string{"autoscaler-2: kube-system/horizontal-pod-autoscaler [/spec/replicas]"},
	}
	if diff := cmp.Diff(want, summarize(r)); diff != "" {
		t.Errorf("proposal (-want +got):\n%s", diff)
	}
}

func TestAutoscaled_SaysWhereTheFieldIsNotKnown(t *testing.T) {
	q := question(func(q *Question) {
		q.Draft.Spec.Resources = append(q.Draft.Spec.Resources, v1alpha1.GuardedResource{APIVersion: "example.com/v1", Kind: "Widget"})
		q.Autoscalers = []Autoscaler{{Kind: HorizontalPodAutoscaler, Namespace: "shop", Name: "h", Target: GroupKind{"example.com", "Widget"}, TargetName: "w"}}
	})
	s, err := NewSurvey(q)
	if err != nil {
		t.Fatal(err)
	}
	s.Add(canon.GVK{Group: "example.com", Version: "v1", Kind: "Widget"}, object("shop", "w"))
	r, err := s.Report(Accounts{autoscalerAccount: Exists})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Autoscaled) != 1 || r.Autoscaled[0].Note == "" || len(r.Autoscaled[0].Paths) > 0 || len(specOf(r).ExpectedWriters) > 0 {
		t.Errorf("autoscaled %+v, proposed %+v", r.Autoscaled, specOf(r).ExpectedWriters)
	}
}

func TestUndecided_HintsAtWhoWritesWithTheSameManager(t *testing.T) {
	r := survey(t, question(), Exists,
		object("shop", "web", stamped(ci), written("pipeline", hour, image)),
		object("shop", "old", written("pipeline", 20*24*hour, image)))
	if len(r.Undecided) != 1 || !strings.HasSuffix(r.Undecided[0].Why, "; with it writes "+ci) {
		t.Errorf("undecided: %+v", r.Undecided)
	}
}
