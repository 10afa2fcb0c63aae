// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"strings"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

// releaseArchive has the records of run 1 of a release: a decision, and a work with its end.
func releaseArchive(t *testing.T) *archive {
	t.Helper()
	a, at := newArchive(t), clitest.Now.Add(-time.Hour)
	of := func(kind evidence.Kind) evidence.Record {
		r := clitest.DecisionOf(kind, "web-1-1", at)
		r.Policy, r.Plan, r.Chain.UID = nil, nil, "uid-of-production"
		r.Subject.Kind, r.Subject.Name, r.Subject.UID = "ABRelease", "web", "uid-of-release"
		r.Delivery = &evidence.Delivery{
			Environment: "production", Release: &evidence.Release{Namespace: "shop", Name: "web", UID: "uid-of-release"},
			Work: &evidence.Work{
				Name: "web-1-1", UID: "uid-of-work", Run: 1, Number: 1, Verb: "Scale", Variation: "canary",
				Target: &evidence.WorkTarget{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "uid-web"},
				Intent: &evidence.WorkIntent{UID: "uid-web", ResourceVersion: "1000", At: at},
			},
		}
		return r
	}
	decision := of(evidence.KindReleaseDecision)
	decision.Delivery.Work, decision.Delivery.Decision = nil, &evidence.Decision{Number: 1, Run: 1, Event: "ab.started", To: "10"}
	a.Append(decision)
	a.Append(of(evidence.KindWorkIntended))
	ended := of(evidence.KindWorkEnded)
	ended.Result = evidence.Result{State: "Succeeded", ResourceVersion: "1001", Hash: clitest.Pl1("a"), Origin: evidence.OriginAPIResponse, At: at}
	a.Append(ended)
	return a
}

// longReleaseArchive has two runs, lost lines of the history, and a release of the same name in
// another namespace.
func longReleaseArchive(t *testing.T) *archive {
	t.Helper()
	a := releaseArchive(t)
	three := int32(3)
	of := func(namespace string, kind evidence.Kind, d evidence.Delivery) {
		r := a.Sealed[0].Record
		d.Environment, d.Release = "production", &evidence.Release{Namespace: namespace, Name: "web", UID: "uid-of-release-in-" + namespace}
		r.Kind, r.At, r.Delivery, r.Chain = kind, r.At.Add(time.Minute), &d, evidence.Chain{UID: "uid-of-production"}
		a.Append(r)
	}
	of("shop", evidence.KindHistoryGap, evidence.Delivery{Range: &evidence.Range{First: 2, Last: 8}})
	of("shop", evidence.KindReleaseDecision, evidence.Delivery{Decision: &evidence.Decision{Number: 9, Run: 2, Event: "canary.stage_started", From: "10", To: "25", Sequence: 1042}})
	of("shop", evidence.KindWorkIntended, evidence.Delivery{Work: &evidence.Work{
		Name: "web-2-1", UID: "uid-of-creation", Run: 2, Number: 1, Verb: "CreateClone", Variation: "canary", Replicas: &three,
		Intent: &evidence.WorkIntent{TemplateHash: clitest.Pl1("d"), At: clitest.Now.Add(-time.Hour)},
	}})
	of("other", evidence.KindReleaseDecision, evidence.Delivery{Decision: &evidence.Decision{Number: 1, Run: 2, Event: "ab.started", To: "50"}})
	return a
}

// TestEvidenceGet_PrintsTheRecordsOfARelease: the records of one run, of all runs, and as they were signed.
func TestEvidenceGet_PrintsTheRecordsOfARelease(t *testing.T) {
	a := longReleaseArchive(t)
	get := func(args ...string) clitest.Answer {
		return clitest.Cluster{}.Run(t, verbs, "", append([]string{"evidence", "get", "--evidence", a.Dir, "--key", a.keyFile(), "--offline"}, args...)...)
	}
	all := get("--release", "shop/web")
	if all.Code != 0 {
		t.Fatalf("exit code %d\n%s", all.Code, all.Stderr)
	}
	golden.Check(t, "testdata/get-release.txt", a.unplaced(all.Stdout))
	second := get("--release", "shop/web", "--run", "2", "-o", "json")
	for _, run := range []struct {
		words string
		count int
	}{{`"run": 2`, 2}, {`"run": 1`, 0}, {`"namespace": "other"`, 0}} {
		if got := strings.Count(second.Stdout, run.words); got != run.count {
			t.Errorf("the output for run 2 has %s %d times, want %d:\n%s", run.words, got, run.count, second.Stdout)
		}
	}
}

// TestEvidenceGet_RefusesAnUnclearRelease: each refusal names the flag.
func TestEvidenceGet_RefusesAnUnclearRelease(t *testing.T) {
	a := releaseArchive(t)
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"a run without a release":                     {[]string{"--run", "1"}, "--run needs --release"},
		"a run below 1":                               {[]string{"--release", "web", "--run", "0"}, "--run is 0; runs count from 1"},
		"a step of a release":                         {[]string{"--release", "web", "--step", "0"}, "--step and --release exclude each other"},
		"a plan beside a release":                     {[]string{"plan", "--release", "web"}, "unexpected arguments: plan"},
		"a release of which the store has no record":  {[]string{"--release", "shop/cart"}, "no good record of release shop/cart in "},
		"a run of which the store has no record":      {[]string{"--release", "shop/web", "--run", "2"}, "no good record of run 2 of release shop/web in "},
		"a release of the same name in another place": {[]string{"--release", "other/web"}, "no good record of release other/web in "},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"evidence", "get", "--evidence", a.Dir, "--key", a.keyFile(), "--offline"}, test.args...)
			got := clitest.Cluster{}.Run(t, verbs, "", args...)
			if got.Code == 0 || !strings.Contains(got.Stderr, test.want) {
				t.Errorf("exit code %d, want %q in\n%s", got.Code, test.want, got.Stderr)
			}
		})
	}
}
