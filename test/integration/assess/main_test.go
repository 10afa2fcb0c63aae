// SPDX-License-Identifier: Apache-2.0

//go:build integration

package assess

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/chart/rendered"
)

const (
	// assessorUser is the chart's service account of the assessor.
	assessorUser = "system:serviceaccount:plumbline-system:plumbline-assessor"
	// patience bounds every wait.
	patience = 20 * time.Second
	// people is a group that may do anything a role can give.
	people = "people"
)

// One API server serves all tests; each has a namespace of its own.
var (
	config *rest.Config
	admin  client.Client
	// kubeconfig is that of config, as a file's content.
	kubeconfig []byte
)

func TestMain(m *testing.M) {
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "integration tests of the assessor:", err)
		code = 1
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		return 1, errors.New("KUBEBUILDER_ASSETS is not set; it names the directory of etcd and kube-apiserver (make test-integration sets it)")
	}
	helm, err := rendered.Find(ctx)
	if err != nil {
		return 1, err
	}
	server := &envtest.Environment{BinaryAssetsDirectory: assets}
	if config, err = server.Start(); err != nil {
		return 1, fmt.Errorf("starting the API server: %w", err)
	}
	defer func() {
		if stopErr := server.Stop(); stopErr != nil {
			err = errors.Join(err, fmt.Errorf("stopping the API server: %w", stopErr))
		}
	}()
	config.QPS = -1
	kubeconfig = server.KubeConfig
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	if err := install(ctx, helm); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// install puts the chart's kinds, roles and policies in place, and none of its pods.
func install(ctx context.Context, helm *rendered.Client) (err error) {
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
	objects, err := rendered.Objects(out)
	if err != nil {
		return err
	}
	if err := admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: rendered.Namespace}}); err != nil {
		return fmt.Errorf("creating the namespace: %w", err)
	}
	everything := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: people},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: people}},
	}
	if err := admin.Create(ctx, everything); err != nil {
		return fmt.Errorf("creating the role binding: %w", err)
	}
	if err := createAll(ctx, objects); err != nil {
		return err
	}
	return awaitStamp(ctx)
}

func createAll(ctx context.Context, objects []*unstructured.Unstructured) error {
	wanted := map[string]bool{
		"CustomResourceDefinition": true, "ClusterRole": true, "ClusterRoleBinding": true, "Role": true, "RoleBinding": true,
		"ServiceAccount": true, "Lease": true,
		"MutatingAdmissionPolicy": true, "MutatingAdmissionPolicyBinding": true,
		"ValidatingAdmissionPolicy": true, "ValidatingAdmissionPolicyBinding": true,
	}
	for _, object := range objects {
		if rendered.IsHook(object) || !wanted[object.GetKind()] {
			continue
		}
		if err := admin.Create(ctx, object); err != nil {
			return fmt.Errorf("creating %s: %w", rendered.ID(object), err)
		}
	}
	return nil
}

// awaitStamp waits until the writer policy is in force; it takes about a second.
func awaitStamp(ctx context.Context) error {
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		probe := deployment("default", "probe")
		err := admin.Create(ctx, probe, client.DryRunAll)
		return probe.Annotations[v1alpha1.AnnotationWriter] != "", err
	})
	if err != nil {
		return fmt.Errorf("waiting for the writer policy to work: %w", err)
	}
	return nil
}
