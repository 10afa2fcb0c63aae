// SPDX-License-Identifier: Apache-2.0

//go:build integration

package kinds

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/child"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

// TestKubectlOutput holds what kubectl prints of the kinds against a golden
// file: the columns are the first thing a person sees of Plumbline.
func TestKubectlOutput(t *testing.T) {
	fillCluster(t)
	var out strings.Builder
	for _, args := range []string{
		"get environments", "get environments -o wide",
		"get guarddefaults", "get guarddefaults -o wide",
		"get clusterspecguards", "get clusterspecguards -o wide",
		"get specguards", "get specguards -o wide",
		"get baselines", "get baselines -o wide",
		"get baselinerevisions", "get baselinerevisions -o wide",
		"get remediationpolicies", "get rpol -o wide",
		"get remediationplans", "get rplan -o wide",
		"get remediationrequests", "get rreq -o wide",
		"get remediationledgers", "get rled -o wide",
		"get effectivenessassessments", "get ea -o wide",
		"get releaseworks", "get rwork -o wide",
		"get plumbline",
		"wait --for=condition=Ready specguard/columns",
		"wait --for=condition=Stalled environment/columns",
		"wait --for=jsonpath={.status.state}=Drifted baseline/deployments.apps.web",
		"wait --for=jsonpath={.status.phase}=Deferred remediationplan/production-7",
	} {
		out.WriteString("$ kubectl " + args + "\n" + kubectl(t, strings.Fields(args)...) + "\n")
	}
	golden.Check(t, filepath.Join("testdata", "kubectl.txt"), settle(out.String()))
}

// TestExplain: every field can be asked about.
func TestExplain(t *testing.T) {
	for field, want := range map[string]string{
		"specguard.spec.suspend.endTime":       "endTime is when the guard works again",
		"clusterspecguard.spec.resources.kind": "kind of the objects, e.g. Deployment",
		"baseline.status.severity.factors":     "factors that make up the score",
		"environment.spec.caps":                "caps bounds all remediation policies",
		"remediationpolicy.spec.safety":        "safety bounds the remediations of the policy",
		"remediationplan.spec.control.verb":    "verb that is asked for",
		"remediationrequest.spec.targets":      "targets are the objects to remediate",
		"ea.status.verdict":                    "verdict says whether the write helped",
		"releasework.spec.verb":                "verb that is asked for",
		"remediationledger.spec.halt":          "halt stops all grants of this ledger",
	} {
		if got := kubectl(t, "explain", field); !strings.Contains(got, want) {
			t.Errorf("kubectl explain %s: no %q in:\n%s", field, want, got)
		}
	}
}

// fillCluster stores one object of each kind with a status, as the assessor
// would leave it.
func fillCluster(t *testing.T) {
	t.Helper()
	ready := conditions("True", "Active")
	store(t, "Environment", "columns", smallestEnvironment, func(e *v1alpha1.Environment) {
		e.Status = v1alpha1.EnvironmentStatus{Conditions: conditions("False", "SelectsNothing"), ObservedGeneration: 1, Namespaces: 3}
		e.Status.Conditions = append(e.Status.Conditions, condition(v1alpha1.ConditionStalled, "True", "SelectsNothing"))
	})
	store(t, "GuardDefaults", "columns", `{defaults: {resyncPeriod: 3h}, environmentName: production}`, func(d *v1alpha1.GuardDefaults) {
		d.Status = v1alpha1.GuardDefaultsStatus{Conditions: ready, ObservedGeneration: 1}
	})
	store(t, "ClusterSpecGuard", "columns", smallestGuard, func(g *v1alpha1.ClusterSpecGuard) {
		g.Status = v1alpha1.GuardStatus{Conditions: ready, ObservedGeneration: 1, Objects: 120}
	})
	store(t, "SpecGuard", "columns", smallestGuard+"\nmode: Warn", func(g *v1alpha1.SpecGuard) {
		g.Status = v1alpha1.GuardStatus{Conditions: ready, ObservedGeneration: 1, Objects: 12, Drifted: 1}
	})
	store(t, "Baseline", "deployments.apps.web", smallestBaseline+"\n"+authorized, func(b *v1alpha1.Baseline) {
		b.Status = driftedStatus(ago(26*time.Hour), ago(40*time.Hour))
	})
	// One that nobody has looked at yet: blank columns, no <invalid>.
	create(t, object(t, "Baseline", "pods.core.new", "target: {apiVersion: v1, kind: Pod, name: new}"))
	fillRemediation(t, ready)
	store(t, "ReleaseWork", "web-7", smallestWork, func(w *v1alpha1.ReleaseWork) {
		w.Status = v1alpha1.ReleaseWorkStatus{
			ObservedGeneration: 1, Phase: v1alpha1.WorkRefused, Reason: v1alpha1.WorkHalted, Message: "the ledger production is halted: INC-9",
			TargetRef: &v1alpha1.ReleaseWorkTarget{Kind: v1alpha1.WorkTargetDeployment, Name: "web-canary"},
		}
	})
	create(t, object(t, "BaselineRevision", "deployments.apps.web-1", smallestRevision, "{by: ci, baselineName: deployments.apps.web, hash: 'pl1:sha256:5eed'}"))
}

// fillRemediation stores what remediation has, as assessor and executor leave it.
func fillRemediation(t *testing.T, ready []metav1.Condition) {
	t.Helper()
	store(t, "RemediationPolicy", "production", smallestPolicy, func(p *v1alpha1.RemediationPolicy) {
		p.Status = v1alpha1.RemediationPolicyStatus{
			Conditions: ready, ObservedGeneration: 1, Targets: v1alpha1.PolicyTargets{Selected: 40, Drifted: 3, Eligible: 1},
			WaitingFor: "the window, which opens at 22:00 Europe/Berlin", LastPlanName: "kinds/production-7",
		}
	})
	store(t, "RemediationPolicy", "from-git", strings.Replace(smallestPolicy, "{", "{serviceAccountName: shop/repairs, ", 1), func(*v1alpha1.RemediationPolicy) {})
	store(t, "RemediationPlan", "production-7", smallestPlan, func(p *v1alpha1.RemediationPlan) {
		p.Status = v1alpha1.RemediationPlanStatus{
			ObservedGeneration: 1, Phase: v1alpha1.PlanDeferred, DeferralReason: "10 of 10 remediations in the last hour",
			Counts: v1alpha1.PlanCounts{Total: 3, Succeeded: 1, Failed: 1, Skipped: 1},
		}
	})
	store(t, "RemediationRequest", "ask-1", smallestRequest, func(q *v1alpha1.RemediationRequest) {
		q.Status = v1alpha1.RemediationRequestStatus{Outcome: v1alpha1.RequestPlanned, PlanName: "production-7"}
	})
	store(t, "EffectivenessAssessment", "production-7-0", smallestAssessment, func(a *v1alpha1.EffectivenessAssessment) {
		a.Status = completedStatus()
	})
	// One that nobody has looked at yet, and a ledger that grants at once.
	create(t, object(t, "RemediationPlan", "production-8", smallestPlan))
	create(t, object(t, "EffectivenessAssessment", "production-7-1", smallestAssessment))
	// A day that is to come was printed as <invalid>, and a halt not at all.
	day := metav1.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC)
	store(t, "RemediationLedger", "production", smallestLedger, func(l *v1alpha1.RemediationLedger) {
		l.Status = v1alpha1.RemediationLedgerStatus{Sequence: 12, GrantStartTime: &day}
	})
	store(t, "RemediationLedger", "staging", smallestLedger+"\nhalt: {requestedBy: alice, reason: INC-9}", func(*v1alpha1.RemediationLedger) {})
}

func driftedStatus(firstSeen, lastCheck *metav1.Time) v1alpha1.BaselineStatus {
	alice := v1alpha1.Actor{User: "alice", Class: v1alpha1.ActorUntrusted, Source: v1alpha1.ActorSourceWriterStamp}
	return v1alpha1.BaselineStatus{
		Conditions: conditions("False", "Drifted"), ObservedGeneration: 1,
		State:         v1alpha1.StateDrifted,
		Observed:      v1alpha1.ObservedState{UID: "u", Hash: "pl1:sha256:c0ffee", Generation: 7, ResourceVersion: "1234", Writer: "alice"},
		FirstSeenTime: firstSeen, LastCheckTime: lastCheck, FindingsTotal: 1,
		Findings: []v1alpha1.Finding{{
			Path:      "/spec/template/spec/containers/[name=app]/image",
			Operation: v1alpha1.OperationChanged, Type: v1alpha1.DriftImage, Class: v1alpha1.ClassImageVersion,
			Before: `"shop:1"`, After: `"shop:2"`, Actor: alice, FirstSeenTime: *firstSeen,
		}},
		Severity: &v1alpha1.Severity{
			Level: v1alpha1.SeverityHigh, Score: 73, Floor: v1alpha1.SeverityHigh, First: v1alpha1.SeverityHigh, Urgency: "Normal",
			Factors: []v1alpha1.SeverityFactor{{Name: "DriftType", Score: 80, Weight: 30}, {Name: "BlastRadius", Score: 10, Weight: 10}},
		},
		Guards: []string{"SpecGuard/columns"},
	}
}

func conditions(ready metav1.ConditionStatus, reason string) []metav1.Condition {
	return []metav1.Condition{condition(v1alpha1.ConditionReady, ready, reason), condition(v1alpha1.ConditionReconciling, "False", "Settled")}
}

func condition(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: "told by a test", ObservedGeneration: 1, LastTransitionTime: *ago(0)}
}

// ago is a time in whole seconds, as they are stored.
func ago(d time.Duration) *metav1.Time {
	return &metav1.Time{Time: time.Now().Add(-d).Truncate(time.Second)}
}

// store creates the object, then writes its status through the subresource and
// reads it back, so that a status which the schema cuts or refuses shows.
func store[T any, P interface {
	*T
	client.Object
}](t *testing.T, kind, name, spec string, fill func(P),
) {
	t.Helper()
	create(t, object(t, kind, name, spec))
	key := client.ObjectKeyFromObject(object(t, kind, name))
	want, got := P(new(T)), P(new(T))
	if err := kube.Get(t.Context(), key, want); err != nil {
		t.Fatalf("reading %s %s: %v", kind, name, err)
	}
	fill(want)
	if err := kube.Status().Update(t.Context(), want.DeepCopyObject().(client.Object), client.FieldValidation(metav1.FieldValidationStrict)); err != nil {
		t.Fatalf("writing the status of %s %s: %v", kind, name, err)
	}
	if err := kube.Get(t.Context(), key, got); err != nil {
		t.Fatalf("reading %s %s: %v", kind, name, err)
	}
	got.SetResourceVersion(want.GetResourceVersion())
	got.SetManagedFields(want.GetManagedFields())
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s %s as written and as stored (-want +got):\n%s", kind, name, diff)
	}
}

func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	bin := filepath.Join(server.BinaryAssetsDirectory, "kubectl")
	cmd := child.Bind(exec.CommandContext(t.Context(), bin, append([]string{"--kubeconfig", kubeconfig, "--namespace", namespace, "--cache-dir", t.TempDir()}, args...)...))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// An age below a minute is that of an object this test has just made.
var freshAge = regexp.MustCompile(`\b[0-9]{1,2}s\b`)

// settle replaces what differs from run to run.
func settle(out string) string {
	lines := strings.Split(freshAge.ReplaceAllString(out, "<age>"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.Join(lines, "\n")
}
