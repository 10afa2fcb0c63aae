// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/actions/records"
	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

// archive is a store with records, and the words of the cluster about them.
type archive struct {
	t *testing.T
	*clitest.Archive
}

func newArchive(t *testing.T) *archive { return &archive{t, clitest.NewArchive(t)} }

// keyFile is the public key in a file.
func (a *archive) keyFile() string {
	a.t.Helper()
	name := filepath.Join(a.t.TempDir(), "public.pem")
	clitest.Must(a.t, os.WriteFile(name, []byte(a.Public), 0o600))
	return name
}

// path of a record's file.
func (a *archive) path(i int) string { return filepath.Join(a.Dir, a.Sealed[i].Name) }

// filled has a plan that has ended, of two steps, and one that is under way.
func filled(t *testing.T) *archive {
	t.Helper()
	a, at := newArchive(t), clitest.Now.Add(-time.Hour)
	a.Append(clitest.DecisionOf(evidence.KindPlanCreated, "done", at))
	a.Append(clitest.StepOf("done", 0, "1001", at.Add(time.Minute)))
	a.Append(clitest.StepOf("done", 1, "1002", at.Add(2*time.Minute)))
	a.Append(clitest.DecisionOf(evidence.KindPlanCreated, "under-way", at.Add(3*time.Minute)))
	a.Append(clitest.StepOf("under-way", 0, "1003", at.Add(4*time.Minute)))
	return a
}

// cluster is what the API server knows when all is well.
func (a *archive) cluster(change ...func(*v1alpha1.RemediationLedger)) []client.Object {
	done := clitest.PlanOf("done", clitest.InPhase(v1alpha1.PlanSucceeded), func(p *v1alpha1.RemediationPlan) {
		for i, s := range a.Sealed[1:3] {
			p.Status.Steps = append(p.Status.Steps, v1alpha1.PlanStep{
				Index: int32(i), State: v1alpha1.StepVerified, Evidence: &v1alpha1.StepEvidence{Sequence: s.Record.Chain.Sequence, Digest: s.Digest},
			})
		}
	})
	change = append([]func(*v1alpha1.RemediationLedger){func(l *v1alpha1.RemediationLedger) {
		l.Status.Chains = []v1alpha1.EvidenceChain{{PolicyUID: clitest.PolicyUID, Sequence: a.Head.Sequence, Digest: a.Head.Digest}}
	}}, change...)
	return []client.Object{
		done, clitest.PlanOf("under-way", clitest.InPhase(v1alpha1.PlanRunning)), clitest.LedgerFor("production", actions.ScopeEnvironment, change...), clitest.LedgerFor("plumbline-cluster", actions.ScopeCluster),
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "plumbline-system", Name: records.KeysConfigMap},
			Data:       map[string]string{"public.pem": a.Public, "note": "rotated never"},
		},
	}
}

// unplaced gives the store the name that the page of the plugin has for a copy of one.
func (a *archive) unplaced(text string) string { return strings.ReplaceAll(text, a.Dir, "./copy") }

func TestEvidence_Golden(t *testing.T) {
	a := filled(t)
	key := a.keyFile()
	cases := map[string][]string{
		"get":            {"get", "done"},
		"get-step":       {"get", "shop/done", "--step", "1", "-o", "wide"},
		"get-json":       {"get", "done", "--step", "0", "-o", "json"},
		"get-offline":    {"get", "shop/under-way", "--offline", "--key", key},
		"verify":         {"verify"},
		"verify-json":    {"verify", "-o", "json"},
		"verify-offline": {"verify", "--offline", "--key", key},
	}
	for name, args := range cases {
		t.Run(name, func(t *testing.T) {
			got := clitest.Cluster{Objects: a.cluster()}.Run(t, verbs, "", append([]string{"evidence", "--evidence", a.Dir}, args...)...)
			if got.Code != map[bool]int{true: invocation.ExitOpenEnd}[name == "verify-offline"] || got.Stderr != "" {
				t.Errorf("%q gave %d, %s", args, got.Code, got.Stderr)
			}
			golden.Check(t, filepath.Join("testdata", name+".txt"), a.unplaced(got.Stdout))
		})
	}
}

func TestEvidenceVerify_FindsWhatIsWrong(t *testing.T) {
	furtherHead := func(l *v1alpha1.RemediationLedger) { l.Status.Chains[0].Sequence = 7 }
	cases := map[string]struct {
		spoil   func(t *testing.T, a *archive)
		cluster []func(*v1alpha1.RemediationLedger)
		args    []string
		code    int
		want    []string
	}{
		"a record was removed": {
			spoil: func(t *testing.T, a *archive) { clitest.Must(t, os.Remove(a.path(1))) }, code: 1,
			want: []string{"Gap ", "NotStored ", "NOT WHOLE: 2 problems"},
		},
		"the end was cut off": {
			spoil: func(t *testing.T, a *archive) { clitest.Must(t, os.Remove(a.path(4))) }, code: 1,
			want: []string{"last #4; should go to 5", "CutOff ", "the chain ends at 4, and should go to 5"},
		},
		"the end was cut off, and no cluster is asked": {
			spoil: func(t *testing.T, a *archive) { clitest.Must(t, os.Remove(a.path(4))) }, args: []string{"--offline"}, code: 3,
			want: []string{"its end was not compared", "UNKNOWN: 4 records in 1 chain are valid, but the end of 1 chain is not known."},
		},
		"the whole chain is gone": {
			spoil: func(t *testing.T, a *archive) { clitest.Must(t, os.RemoveAll(filepath.Dir(a.path(0)))) }, code: 1,
			want: []string{"CutOff ", "NotStored "},
		},
		"one letter was changed": {
			spoil: func(t *testing.T, a *archive) {
				content, err := os.ReadFile(a.path(2))
				clitest.Must(t, err)
				clitest.Must(t, os.Remove(a.path(2)))
				content[len(content)/2] ^= 1
				clitest.Must(t, os.WriteFile(a.path(2), content, 0o600))
			}, code: 1, want: []string{"NOT WHOLE"},
		},
		"the ledger knows of more": {cluster: []func(*v1alpha1.RemediationLedger){furtherHead}, code: 1, want: []string{"CutOff "}},
		"the ledger knows of less": {
			cluster: []func(*v1alpha1.RemediationLedger){func(l *v1alpha1.RemediationLedger) {
				l.Status.Chains[0].Sequence--
				l.Status.Chains[0].Digest = ""
			}},
			code: 1, want: []string{"OtherHead ", "1 more than the ledger knows of"},
		},
		"no ledger knows the chain": {
			cluster: []func(*v1alpha1.RemediationLedger){func(l *v1alpha1.RemediationLedger) { l.Status.Chains = nil }},
			code:    3,
			want:    []string{"its end is not known: no ledger tells it", "UNKNOWN: 5 records"},
		},
		"nothing is there": {
			spoil: func(t *testing.T, a *archive) { clitest.Must(t, os.RemoveAll(filepath.Dir(a.path(0)))) },
			args:  []string{"--offline"},
			code:  2,
			want:  []string{"No records were found to verify.", "there is no record to verify"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a := filled(t)
			if tc.spoil != nil {
				tc.spoil(t, a)
			}
			args := []string{"evidence", "verify", "--evidence", "file://" + a.Dir, "--key", a.keyFile()}
			got := clitest.Cluster{Objects: a.cluster(tc.cluster...)}.Run(t, verbs, "", append(args, tc.args...)...)
			if got.Code != tc.code {
				t.Errorf("exit code %d, want %d\n%s", got.Code, tc.code, got.Stderr)
			}
			for _, want := range tc.want {
				if !strings.Contains(got.Stdout+got.Stderr, want) {
					t.Errorf("%q is missing in\n%s%s", want, got.Stdout, got.Stderr)
				}
			}
		})
	}
}

func TestEvidenceVerify_CannotSay(t *testing.T) {
	a := filled(t)
	noKey := a.cluster()[:4]
	cases := map[string]struct {
		objects []client.Object
		args    []string
		want    string
	}{
		"no store is named, and no executor runs": {args: []string{"verify"}, want: "error: no executor runs in plumbline-system that the records could be read from; say where they are with --evidence\n"},
		"a store that is not there":               {args: []string{"verify", "--evidence", "/nonexistent"}, want: "error: opening evidence store: "},
		"a store of another kind":                 {args: []string{"verify", "--evidence", "ftp://x/y"}, want: `scheme "ftp"`},
		"offline without a key":                   {args: []string{"verify", "--evidence", a.Dir, "--offline"}, want: "error: --offline needs --key"},
		"a key that is not there":                 {args: []string{"verify", "--evidence", a.Dir, "--key", "/nonexistent"}, want: "error: reading public keys: open /nonexistent"},
		"no key in the cluster":                   {objects: noKey, args: []string{"verify", "--evidence", a.Dir}, want: "reading the public keys (--key reads them from a file): "},
		"an empty ConfigMap":                      {objects: append(noKey[:4:4], &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "plumbline-system", Name: records.KeysConfigMap}}), args: []string{"verify", "--evidence", a.Dir}, want: "has no public key: has the executor ever run?"},
		"a time without a log":                    {args: []string{"verify", "--evidence", a.Dir, "--since", "1h"}, want: "are about the audit log; name it with --audit-log"},
		"a writer without a log":                  {args: []string{"verify", "--evidence", a.Dir, "--writer", "x"}, want: "--writer is about the audit log"},
		"two beginnings":                          {args: []string{"verify", "--evidence", a.Dir, "--audit-log", "x", "--since", "1h", "--since-time", "x"}, want: "exclude each other"},
		"a time that is none":                     {args: []string{"verify", "--evidence", a.Dir, "--audit-log", "x", "--until-time", "noon"}, want: `invalid --until-time "noon", want a time like`},
		"a log that is not there":                 {args: []string{"verify", "--evidence", a.Dir, "--audit-log", "/nonexistent"}, want: "error: reading the audit log: open /nonexistent"},
		"a log without events":                    {args: []string{"verify", "--evidence", a.Dir, "--audit-log", os.DevNull}, want: "error: the audit log has no event to compare\n"},
		"records that nobody may read":            {args: []string{"verify", "--evidence", a.Dir, "-o", "wide"}, want: `output format "wide"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objects := tc.objects
			if objects == nil {
				objects = a.cluster()
			}
			got := clitest.Cluster{Objects: objects}.Run(t, verbs, "", append([]string{"evidence"}, tc.args...)...)
			if got.Code != 2 || !strings.Contains(got.Stderr, tc.want) {
				t.Errorf("got %+v, want %q", got, tc.want)
			}
		})
	}
}

func TestEvidenceGet_Failures(t *testing.T) {
	a := filled(t)
	cases := map[string]struct {
		args []string
		want string
	}{
		"a plan without records": {[]string{"nope"}, "error: there is no good record of plan shop/nope in "},
		"a step without one":     {[]string{"done", "--step", "7"}, "error: there is no good record of plan shop/done in "},
		"no plan":                {nil, "error: name one plan: \"kubectl plumbline plan list\" lists them\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := clitest.Cluster{Objects: a.cluster()}.Run(t, verbs, "", append([]string{"evidence", "get", "--evidence", a.Dir}, tc.args...)...)
			if got.Code != 1 || got.Stdout != "" || !strings.Contains(got.Stderr, tc.want) {
				t.Errorf("got %+v, want %q", got, tc.want)
			}
		})
	}
	clitest.Must(t, os.Remove(a.path(3)))
	got := clitest.Cluster{Objects: a.cluster()}.Run(t, verbs, "", "evidence", "get", "shop/done", "--evidence", a.Dir)
	if want := "Warning: the store has 1 problem; kubectl plumbline evidence verify tells which\n"; got.Code != 0 || got.Stderr != want {
		t.Errorf("got %d, %q, want %q", got.Code, got.Stderr, want)
	}
}
