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
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/chart/rendered"
)

const (
	// tenant is the namespace of the tests' workloads.
	tenant = "shop"
	// assessor is the user name of the assessor's service account.
	assessor = "system:serviceaccount:plumbline-system:plumbline-assessor"
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
	defer func() {
		if stopErr := server.Stop(); stopErr != nil {
			err = errors.Join(err, fmt.Errorf("stopping the API server: %w", stopErr))
		}
	}()
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

// startServer starts an API server of its own.
func startServer() (*envtest.Environment, error) {
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		return nil, errors.New("KUBEBUILDER_ASSETS is not set; it names the directory of etcd, kube-apiserver and kubectl (make test-integration sets it)")
	}
	server := &envtest.Environment{BinaryAssetsDirectory: assets}
	if _, err := server.Start(); err != nil {
		return nil, fmt.Errorf("starting the API server: %w", err)
	}
	// The client's own limit would only slow the tests.
	server.Config.QPS, server.Config.Burst = 1000, 1000
	return server, nil
}

// setUp installs what works without pods: CRDs, roles, policies. The webhook
// configurations stay out: there is no webhook here, and each write would wait.
func setUp(ctx context.Context) (err error) {
	if err := v1alpha1.AddToScheme(scheme.Scheme); err != nil {
		return fmt.Errorf("adding our kinds to the scheme: %w", err)
	}
	if admin, err = client.New(config, client.Options{Scheme: scheme.Scheme}); err != nil {
		return fmt.Errorf("building a client: %w", err)
	}
	out, err := helm.Template(ctx, "--values", "testdata/values.yaml")
	if err != nil {
		return err
	}
	if manifest, err = rendered.Objects(out); err != nil {
		return err
	}
	for _, namespace := range []string{tenant, rendered.Namespace} {
		if err := admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
			return fmt.Errorf("creating namespace %s: %w", namespace, err)
		}
	}
	// Older than the policies, so it carries no stamp.
	if err := admin.Create(ctx, deployment("legacy")); err != nil {
		return fmt.Errorf("creating the unstamped object: %w", err)
	}
	if err := createWidgetKind(ctx); err != nil {
		return err
	}
	kinds := map[string]bool{
		"CustomResourceDefinition": true, "ClusterRole": true, "ClusterRoleBinding": true, "Role": true, "RoleBinding": true, "ServiceAccount": true,
		"MutatingAdmissionPolicy": true, "MutatingAdmissionPolicyBinding": true,
		"ValidatingAdmissionPolicy": true, "ValidatingAdmissionPolicyBinding": true,
	}
	for _, object := range manifest {
		if rendered.IsHook(object) || !kinds[object.GetKind()] {
			continue
		}
		if err := admin.Create(ctx, object.DeepCopy()); err != nil {
			return fmt.Errorf("creating %s: %w", rendered.ID(object), err)
		}
	}
	if err := createRoles(ctx); err != nil {
		return err
	}
	return awaitPolicies(ctx)
}

// createRoles lets every tenant do what edit allows on workloads and admin on
// our kinds, and one hostile group everything: policies must hold against it too.
func createRoles(ctx context.Context) error {
	bindings := []client.Object{
		clusterBinding("tenants-edit", "system:aggregate-to-edit", "tenants"),
		clusterBinding("tenants-view", "system:aggregate-to-view", "tenants"),
		clusterBinding("tenants-plumbline-view", "plumbline-view", "tenants"),
		clusterBinding("tenants-plumbline-admin", "plumbline-admin", "tenants"),
		clusterBinding("roots-everything", "cluster-admin", "roots"),
	}
	for _, binding := range bindings {
		if err := admin.Create(ctx, binding); err != nil {
			return fmt.Errorf("creating binding %s: %w", binding.GetName(), err)
		}
	}
	return nil
}

func clusterBinding(name, role, group string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: group}},
	}
}

// awaitPolicies waits until each policy is seen to work.
func awaitPolicies(ctx context.Context) error {
	probes := map[string]func(context.Context) (bool, error){
		"plumbline-writer":           writerWorks,
		"plumbline-stamp-status":     stampStatusWorks,
		"plumbline-requested-by":     requestedByWorks,
		"plumbline-baseline-writers": baselineWritersWork,
	}
	for name, probe := range probes {
		if err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, patience, true, probe); err != nil {
			return fmt.Errorf("waiting for policy %s to work: %w", name, err)
		}
	}
	return nil
}

func writerWorks(ctx context.Context) (bool, error) {
	probe := deployment("probe-writer")
	err := admin.Create(ctx, probe, client.DryRunAll)
	return probe.Annotations[v1alpha1.AnnotationWriter] != "", err
}

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
	as, err := as(assessor)
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

// as is a client that acts as a user; the API server's policies see that user
// and no other. Service accounts get their groups by themselves.
func as(user string, groups ...string) (client.Client, error) {
	impersonated := rest.CopyConfig(config)
	impersonated.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append([]string{"system:authenticated"}, groups...)}
	return client.New(impersonated, client.Options{Scheme: scheme.Scheme})
}

// mustBe is as for tests.
func mustBe(t *testing.T, user string, groups ...string) client.Client {
	t.Helper()
	c, err := as(user, groups...)
	if err != nil {
		t.Fatalf("building a client for %s: %v", user, err)
	}
	return c
}
