// SPDX-License-Identifier: Apache-2.0

//go:build integration

package policies

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
	"github.com/plumbline-dev/plumbline/test/harness/waits"
)

const (
	// tenant is the namespace of the tests' workloads.
	tenant = "shop"
	// assessor and executor are the user names of their service accounts.
	assessor = "system:serviceaccount:plumbline-system:plumbline-assessor"
	executor = "system:serviceaccount:plumbline-system:plumbline-executor"
	// patience bounds every wait: a new policy bites after about a second.
	patience = 30 * time.Second
)

// One API server serves all tests of the policies; objects have names of their own.
var (
	config *rest.Config
	admin  client.Client
	helm   *rendered.Client
	// kubeconfig is a file for kubectl.
	kubeconfig string
	// manifest is the chart with every option that adds a policy or a rule.
	manifest []*unstructured.Unstructured
)

func TestMain(m *testing.M) {
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "integration tests of the policies:", err)
		code = 1
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	ctrllog.SetLogger(klog.Background())
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if helm, err = rendered.Find(ctx); err != nil {
		return 1, err
	}
	server, err := startServer()
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	config = server.Config
	directory, err := os.MkdirTemp("", "policies")
	if err != nil {
		return 1, fmt.Errorf("making a directory for the kubeconfig: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(directory)) }()
	kubeconfig = filepath.Join(directory, "kubeconfig")
	if err := os.WriteFile(kubeconfig, server.KubeConfig, 0o600); err != nil {
		return 1, fmt.Errorf("writing the kubeconfig: %w", err)
	}
	if err := setUp(ctx); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// startServer starts the API server: that of the oldest Kubernetes, if the environment
// names one, as make upgrade-long does.
func startServer() (*envtest.Environment, error) {
	if !apiserver.HasOldest() {
		return apiserver.Start()
	}
	program, err := apiserver.Oldest()
	if err != nil {
		return nil, err
	}
	oldest, err := apiserver.Program(program)
	if err != nil {
		return nil, err
	}
	return apiserver.Start(oldest)
}

// values are those of the chart. The oldest Kubernetes does not know the kind of the policy
// that stamps writers.
func values() []string {
	args := []string{"--values", "testdata/values.yaml"}
	if apiserver.HasOldest() {
		args = append(args, "--set", "policies.writerStamp=Webhook")
	}
	return args
}

// needsStampingPolicy skips a test of the policy that stamps writers on the oldest Kubernetes.
func needsStampingPolicy(t *testing.T) {
	t.Helper()
	if apiserver.HasOldest() {
		t.Skip("the oldest Kubernetes does not serve MutatingAdmissionPolicies: the webhook stamps there")
	}
}

// setUp installs what works without pods.
func setUp(ctx context.Context) (err error) {
	if err := v1alpha1.AddToScheme(scheme.Scheme); err != nil {
		return fmt.Errorf("adding our kinds to the scheme: %w", err)
	}
	if admin, err = client.New(config, client.Options{Scheme: scheme.Scheme}); err != nil {
		return fmt.Errorf("building a client: %w", err)
	}
	if manifest, err = apiserver.Render(ctx, helm, values()...); err != nil {
		return err
	}
	if err := admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tenant}}); err != nil {
		return fmt.Errorf("creating namespace %s: %w", tenant, err)
	}
	// Older than the policies, so it carries no stamp.
	if err := admin.Create(ctx, deployment("legacy")); err != nil {
		return fmt.Errorf("creating the unstamped object: %w", err)
	}
	if err := createWidgetKind(ctx); err != nil {
		return err
	}
	if err := apiserver.Install(ctx, admin, manifest); err != nil {
		return err
	}
	if err := createRoles(ctx); err != nil {
		return err
	}
	return awaitPolicies(ctx)
}

// createRoles lets every tenant do what edit allows on workloads and admin on
// our kinds, and one hostile group everything: policies must hold against it too.
func createRoles(ctx context.Context) error {
	bind := func(name, role, group string) error { return apiserver.Bind(ctx, admin, name, role, group) }
	return errors.Join(
		bind("tenants-edit", "system:aggregate-to-edit", "tenants"),
		bind("tenants-view", "system:aggregate-to-view", "tenants"),
		bind("tenants-plumbline-view", "plumbline-view", "tenants"),
		bind("tenants-plumbline-admin", "plumbline-admin", "tenants"),
		bind("tenants-plumbline-release", "plumbline-release", "tenants"),
		bind("roots-everything", "cluster-admin", "roots"),
		bind("authors-policies", "plumbline-policy-author", "authors"),
		bind("operators-plans", "plumbline-plan-operator", "operators"),
		bind("remediators-requests", "plumbline-remediator", "remediators"),
		bind("operators-view", "plumbline-view", "operators"),
		bind("halters-ledgers", "plumbline-ledger-operator", "halters"),
		bindDelegates(ctx),
	)
}

// awaitPolicies waits until each policy is seen to work.
func awaitPolicies(ctx context.Context) error {
	probes := map[string]func(context.Context) (bool, error){
		"plumbline-writer":             writerWorks,
		"plumbline-stamp-status":       stampStatusWorks,
		"plumbline-requested-by":       requestedByWorks,
		"plumbline-baseline-writers":   baselineWritersWork,
		"plumbline-policy-writers":     policyWritersWork,
		"plumbline-plan-writers":       planWritersWork,
		"plumbline-request-writers":    requestWritersWork,
		"plumbline-assessment-writers": assessmentWritersWork,
		"plumbline-ledger-writers":     ledgerWritersWork,
		"plumbline-executor-marks":     executorMarksWork,
		"plumbline-executor-creations": creationsWork,
	}
	if apiserver.HasOldest() {
		delete(probes, "plumbline-writer")
	}
	for name, probe := range probes {
		err := waits.Until(ctx, patience, "the policy "+name+" works", func(ctx context.Context) error {
			works, err := probe(ctx)
			if err == nil && !works {
				err = errors.New("it does not")
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func writerWorks(ctx context.Context) (bool, error) { return apiserver.Stamped(ctx, admin) }

func stampStatusWorks(ctx context.Context) (bool, error) {
	probe := deployment("probe-status")
	if err := admin.Create(ctx, probe); err != nil && !apierrors.IsAlreadyExists(err) {
		return false, err
	}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"plumbline.dev/writer":"probe"}}}`))
	err := admin.Status().Patch(ctx, probe, patch, &client.SubResourcePatchOptions{PatchOptions: client.PatchOptions{DryRun: []string{metav1.DryRunAll}}})
	return apierrors.IsForbidden(err), nil
}

func requestedByWorks(ctx context.Context) (bool, error) {
	as, err := apiserver.As(config, assessor)
	if err != nil {
		return false, err
	}
	probe := baseline("probe-requested-by")
	probe.Spec.Accept = &v1alpha1.AcceptRequest{Hash: "pl1:sha256:00", RequestedBy: "somebody"}
	err = as.Create(ctx, probe, client.DryRunAll)
	return apierrors.IsForbidden(err), nil
}

func baselineWritersWork(ctx context.Context) (bool, error) {
	return apierrors.IsForbidden(admin.Create(ctx, baseline("probe-writers"), client.DryRunAll)), nil
}

func policyWritersWork(ctx context.Context) (bool, error) {
	probe := remediationPolicy("probe-policy-writers")
	probe.Spec.RequestedBy = "somebody"
	return apierrors.IsForbidden(admin.Create(ctx, probe, client.DryRunAll)), nil
}

func planWritersWork(ctx context.Context) (bool, error) {
	return apierrors.IsForbidden(admin.Create(ctx, remediationPlan("probe-plan-writers", "somebody"), client.DryRunAll)), nil
}

func requestWritersWork(ctx context.Context) (bool, error) {
	return apierrors.IsForbidden(admin.Create(ctx, remediationRequest("probe-request-writers", "somebody"), client.DryRunAll)), nil
}

func assessmentWritersWork(ctx context.Context) (bool, error) {
	return apierrors.IsForbidden(admin.Create(ctx, assessmentNamed("probe-assessment-writers"), client.DryRunAll)), nil
}

func ledgerWritersWork(ctx context.Context) (bool, error) {
	return apierrors.IsForbidden(admin.Create(ctx, remediationLedger("probe-ledger-writers"), client.DryRunAll)), nil
}

func executorMarksWork(ctx context.Context) (bool, error) {
	probe := environment("probe-executor-marks")
	if err := admin.Create(ctx, probe); err != nil && !apierrors.IsAlreadyExists(err) {
		return false, err
	}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"status":{"namespaces":0,"ledgerUID":"probe"}}`))
	err := admin.Status().Patch(ctx, probe, patch, &client.SubResourcePatchOptions{PatchOptions: client.PatchOptions{DryRun: []string{metav1.DryRunAll}}})
	return apierrors.IsForbidden(err), nil
}

// mustBe is a client that acts as a user.
func mustBe(t testing.TB, user string, groups ...string) client.Client {
	t.Helper()
	c, err := apiserver.As(config, user, groups...)
	if err != nil {
		t.Fatalf("building a client for %s: %v", user, err)
	}
	return c
}
