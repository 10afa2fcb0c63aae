// SPDX-License-Identifier: Apache-2.0

//go:build integration

package roles

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/plumbline-dev/plumbline/internal/cli"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

const (
	tenant   = "shop"
	neighbor = "bank"
	assessor = "system:serviceaccount:plumbline-system:plumbline-assessor"
	executor = "system:serviceaccount:plumbline-system:plumbline-executor"
	// patience bounds each wait: a new policy bites after about a second.
	patience = 30 * time.Second
)

// The API server is started once. Writes of the assessor and the executor go by
// their own names: the policies let nobody else make them.
var (
	admin, asAssessor, asExecutor client.Client
	kubeconfig                    string
	config                        *rest.Config
	auditLog                      string
)

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard())
	log.SetLogger(logr.Discard())
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "integration tests of the plugin's roles:", err)
		code = 1
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	helm, err := rendered.Find(ctx)
	if err != nil {
		return 1, err
	}
	manifest, err := apiserver.Render(ctx, helm, "--set", "executor.enabled=true", "--set", "api.enabled=true")
	if err != nil {
		return 1, err
	}
	directory, err := os.MkdirTemp("", "plumbline-roles")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(directory)) }()
	if err := writeServerFiles(directory); err != nil {
		return 1, err
	}
	server, err := apiserver.Start(withServerFiles(directory))
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	config, auditLog = server.Config, filepath.Join(directory, "audit.log")
	kubeconfig = filepath.Join(directory, "kubeconfig")
	if err := apiserver.Enrol(server, kubeconfig, "admin", "system:masters"); err != nil {
		return 1, err
	}
	if err := clients(server); err != nil {
		return 1, err
	}
	for _, name := range []string{tenant, neighbor} {
		if err := admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return 1, err
		}
	}
	if err := errors.Join(apiserver.Install(ctx, admin, manifest), bindRoles(ctx)); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

func clients(server *envtest.Environment) (err error) {
	if err := v1alpha1.AddToScheme(scheme.Scheme); err != nil {
		return err
	}
	if admin, err = client.New(server.Config, client.Options{}); err != nil {
		return err
	}
	if asAssessor, err = apiserver.As(server.Config, assessor); err != nil {
		return err
	}
	asExecutor, err = apiserver.As(server.Config, executor)
	return err
}

// bindRoles makes a group for each role of people; all of them may look.
func bindRoles(ctx context.Context) error {
	var failed []error
	for group, role := range map[string]string{"operators": "plumbline-plan-operator", "authors": "plumbline-policy-author", "remediators": "plumbline-remediator"} {
		failed = append(failed, apiserver.Bind(ctx, admin, group, role, group))
	}
	for _, group := range []string{"viewers", "operators", "authors"} {
		failed = append(failed, apiserver.Bind(ctx, admin, group+"-view", "plumbline-view", group))
	}
	halters := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: rendered.Namespace, Name: "halters"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "plumbline-ledger-operator"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "halters"}},
	}
	failed = append(failed, admin.Create(ctx, halters))
	failed = append(failed, apiserver.AwaitBound(ctx, admin, halters.Subjects[0], halters.Namespace, halters.RoleRef))
	failed = append(failed, bindInTenant(ctx, editor, "plumbline-view", "plumbline-history", "plumbline-release"))
	failed = append(failed, bindInTenant(ctx, owner, "plumbline-view", "plumbline-history", "plumbline-release", "plumbline-admin", "plumbline-plan-operator", "plumbline-remediator"))
	return errors.Join(failed...)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

type answer struct {
	Code           int
	Stdout, Stderr string
}

// as runs the plugin as a user of a group.
func as(t *testing.T, user, group string, args ...string) answer {
	t.Helper()
	var out, errOut bytes.Buffer
	args = append([]string{"--kubeconfig", kubeconfig, "-n", tenant, "--as", user, "--as-group", group}, args...)
	code := cli.Run(t.Context(), args, cli.Environment{In: strings.NewReader(""), Out: &out, Err: &errOut, Now: time.Now, Version: "test"})
	return answer{Code: code, Stdout: out.String(), Stderr: errOut.String()}
}

// eventually runs the plugin until it succeeds: roles take a moment to be known.
func eventually(t *testing.T, user, group string, args ...string) answer {
	t.Helper()
	var got answer
	poll.True(t, patience, strings.Join(args, " ")+" succeeds", func() bool {
		got = as(t, user, group, args...)
		return got.Code == 0
	})
	return got
}

func plan(t *testing.T, name string) *v1alpha1.RemediationPlan {
	t.Helper()
	return planIn(t, tenant, name)
}

func planIn(t *testing.T, namespace, name string) *v1alpha1.RemediationPlan {
	t.Helper()
	p := newPlan(namespace, name)
	must(t, asAssessor.Create(t.Context(), p))
	return p
}

func newPlan(namespace, name string) *v1alpha1.RemediationPlan {
	hash := "pl1:sha256:" + strings.Repeat("a", 64)
	return &v1alpha1.RemediationPlan{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.RemediationPlanSpec{Plan: v1alpha1.PlannedRemediation{
			Policy:          v1alpha1.PlanPolicy{Name: "production", UID: "uid-of-the-policy", Generation: 1, Digest: "sha256:digest"},
			EnvironmentName: "production", Trigger: v1alpha1.TriggerManual, Strategy: v1alpha1.StrategyRolling,
			InitiatedBy: "system:auto", Requester: "ann", CorrelationID: "c-1", DeadlineTime: metav1.NewTime(time.Now().Add(time.Hour)).Rfc3339Copy(),
			Targets: []v1alpha1.PlanTarget{{
				BaselineTarget: v1alpha1.BaselineTarget{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"},
				BaselineName:   "deployments.apps.web", UID: "uid-of-web", DriftedHash: hash, DesiredHash: hash,
				Revision: "deployments.apps.web-1", RevisionHash: hash, Paths: []string{"/spec/replicas"}, Action: v1alpha1.ActionReconcile,
				Severity:  v1alpha1.Severity{Level: v1alpha1.SeverityHigh, Score: 70, First: v1alpha1.SeverityHigh, Urgency: v1alpha1.UrgencyNormal},
				DriftType: v1alpha1.DriftScale, FirstSeenTime: metav1.Now().Rfc3339Copy(),
			}},
			Batches: []v1alpha1.PlanBatch{{Order: 0, Steps: []int32{0}, RequiresHealthCheck: v1alpha1.Enabled}},
		}},
	}
}

func TestAPlanOperatorSteersPlansAndAViewerDoesNot(t *testing.T) {
	p := plan(t, "p")
	for _, step := range []struct {
		args []string
		want v1alpha1.PlanControl
	}{
		{[]string{"plan", "execute", "p", "--reason", "agreed"}, v1alpha1.PlanControl{Verb: v1alpha1.PlanExecute, RequestedBy: "oz", Reason: "agreed"}},
		{[]string{"plan", "pause", "p"}, v1alpha1.PlanControl{Verb: v1alpha1.PlanPause, RequestedBy: "oz"}},
		{[]string{"plan", "resume", "p"}, v1alpha1.PlanControl{RequestedBy: "oz"}},
		{[]string{"plan", "cancel", "p", "--yes"}, v1alpha1.PlanControl{Verb: v1alpha1.PlanCancel, RequestedBy: "oz"}},
	} {
		eventually(t, "oz", "operators", append(step.args, "--wait=false")...)
		must(t, admin.Get(t.Context(), client.ObjectKeyFromObject(p), p))
		if diff := cmp.Diff(step.want, p.Spec.Control); diff != "" {
			t.Errorf("%q stored (-want +got):\n%s", step.args, diff)
		}
	}
	eventually(t, "vic", "viewers", "plan", "show", "p")
	got := as(t, "vic", "viewers", "plan", "cancel", "--yes", plan(t, "q").Name)
	if got.Code != 1 || !strings.Contains(got.Stderr, `Error from server (Forbidden): shop/q was not canceled: remediationplans.plumbline.dev "q" is forbidden: User "vic" cannot patch`) {
		t.Errorf("a viewer canceled: %+v", got)
	}
}

func TestOnlyAnAuthorSwitchesPoliciesOnAndInTheirOwnName(t *testing.T) {
	policy := &v1alpha1.RemediationPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "production"},
		Spec:       v1alpha1.RemediationPolicySpec{EnvironmentName: "production", Trigger: v1alpha1.TriggerImmediate, Action: v1alpha1.ActionReconcile},
	}
	must(t, admin.Create(t.Context(), policy))
	got := eventually(t, "ann", "authors", "policy", "activate", "production", "--yes", "--wait=false")
	must(t, admin.Get(t.Context(), client.ObjectKeyFromObject(policy), policy))
	if s := policy.Spec; s.Mode != v1alpha1.PolicyModeActive || s.RequestedBy != "ann" || !strings.Contains(strings.Join(s.RequestedByGroups, " "), "authors") {
		t.Errorf("%+v stored %s by %s, %q", got, s.Mode, s.RequestedBy, s.RequestedByGroups)
	}
	refused := as(t, "oz", "operators", "policy", "deactivate", "production", "--wait=false")
	if refused.Code != 1 || !strings.Contains(refused.Stderr, `User "oz" cannot patch resource "remediationpolicies"`) {
		t.Errorf("an operator deactivated: %+v", refused)
	}
	eventually(t, "ben", "authors", "policy", "halt", "production", "--wait=false")
	must(t, admin.Get(t.Context(), client.ObjectKeyFromObject(policy), policy))
	if s := policy.Spec; s.Mode != v1alpha1.PolicyModeHalted || s.RequestedBy != "ben" || len(s.RequestedByGroups) != 0 {
		t.Errorf("stored %s by %s, %q", s.Mode, s.RequestedBy, s.RequestedByGroups)
	}
}

func TestALedgerOperatorHaltsWithRightsInPlumblinesNamespaceAlone(t *testing.T) {
	ledger := &v1alpha1.RemediationLedger{
		ObjectMeta: metav1.ObjectMeta{Namespace: rendered.Namespace, Name: "production"}, Spec: v1alpha1.RemediationLedgerSpec{Scope: "Environment"},
	}
	must(t, asExecutor.Create(t.Context(), ledger))
	for _, step := range []struct {
		args []string
		want *v1alpha1.LedgerHalt
	}{
		{[]string{"halt", "production", "--reason", "INC-9"}, &v1alpha1.LedgerHalt{RequestedBy: "hal", Reason: "INC-9"}},
		{[]string{"resume", "production"}, nil},
	} {
		eventually(t, "hal", "halters", step.args...)
		must(t, admin.Get(t.Context(), client.ObjectKeyFromObject(ledger), ledger))
		if diff := cmp.Diff(step.want, ledger.Spec.Halt); diff != "" {
			t.Errorf("%q stored (-want +got):\n%s", step.args, diff)
		}
	}
	got := as(t, "oz", "operators", "halt", "production", "--reason", "x")
	if got.Code != 1 || !strings.Contains(got.Stderr, `environment.plumbline.dev/production was not halted: `) && !strings.Contains(got.Stderr, "forbidden") {
		t.Errorf("somebody else halted: %+v", got)
	}
}
