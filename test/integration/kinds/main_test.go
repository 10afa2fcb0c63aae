// SPDX-License-Identifier: Apache-2.0

//go:build integration

package kinds

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
)

// namespace in which the namespaced kinds are tried.
const namespace = "kinds"

// The API server is started once: every test uses objects of its own name, and
// most only dry-run, so that they do not meet.
var (
	server     *envtest.Environment
	config     *rest.Config
	kube       client.Client
	kubeconfig string
)

func TestMain(m *testing.M) {
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "integration tests of the kinds:", err)
		code = 1
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	// Every API group, so that the closed list of built-in kinds meets all of them.
	everyGroup := func(s *envtest.Environment) {
		s.ControlPlane.GetAPIServer().Configure().Append("runtime-config", "api/all=true")
	}
	if server, err = apiserver.Start(apiserver.WithKinds, everyGroup); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	config = server.Config
	if err := setUp(); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

func setUp() error {
	// Tests run hundreds of requests at once; the client's own limit would only slow them.
	config.QPS = -1
	if err := v1alpha1.AddToScheme(scheme.Scheme); err != nil {
		return fmt.Errorf("registering the kinds: %w", err)
	}
	var err error
	if kube, err = client.New(config, client.Options{Scheme: scheme.Scheme}); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if err := kube.Create(context.Background(), ns); err != nil {
		return fmt.Errorf("creating namespace %s: %w", namespace, err)
	}
	kubeconfig = filepath.Join(server.ControlPlane.APIServer.CertDir, "kubeconfig")
	if err := os.WriteFile(kubeconfig, server.KubeConfig, 0o600); err != nil {
		return fmt.Errorf("writing a kubeconfig: %w", err)
	}
	return nil
}

// object builds an object of a kind from YAML fragments of its spec; of two
// fragments with the same field the later one holds.
func object(t *testing.T, kind, name string, fragments ...string) *unstructured.Unstructured {
	t.Helper()
	spec := map[string]any{}
	for _, fragment := range fragments {
		raw, err := yaml.YAMLToJSON([]byte(fragment))
		if err != nil {
			t.Fatalf("reading the fragment %q: %v", fragment, err)
		}
		// This decoder keeps whole numbers whole, as the client does.
		var fields map[string]any
		if err := json.Unmarshal(raw, &fields); err != nil {
			t.Fatalf("reading the fragment %q: %v", fragment, err)
		}
		maps.Copy(spec, fields)
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	u.SetName(name)
	if slices.Contains([]string{"SpecGuard", "SpecGuardException", "Baseline", "BaselineRevision", "RemediationPlan", "RemediationRequest", "RemediationLedger", "EffectivenessAssessment", "ABRelease", "ReleaseWork"}, kind) {
		u.SetNamespace(namespace)
	}
	return u
}

// dryCreate asks the API server to admit the object without storing it.
func dryCreate(t *testing.T, obj client.Object) error {
	t.Helper()
	return kube.Create(t.Context(), obj, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
}

// create stores the object for the length of the test.
func create(t *testing.T, obj client.Object) {
	t.Helper()
	if err := kube.Create(t.Context(), obj, client.FieldValidation(metav1.FieldValidationStrict)); err != nil {
		t.Fatalf("creating %s: %v", obj.GetName(), err)
	}
	t.Cleanup(func() {
		if err := kube.Delete(context.WithoutCancel(t.Context()), obj); client.IgnoreNotFound(err) != nil {
			t.Errorf("deleting %s: %v", obj.GetName(), err)
		}
	})
}

// refusal is what a refused request says: each field and its message.
func refusal(t *testing.T, err error) map[string]string {
	t.Helper()
	if err == nil {
		t.Fatal("the API server accepted it")
	}
	var status *apierrors.StatusError
	if !errors.As(err, &status) || !apierrors.IsInvalid(err) {
		t.Fatalf("refused, but not as invalid: %v", err)
	}
	out := map[string]string{}
	for _, cause := range status.Status().Details.Causes {
		// A note beside schema errors, not an error of the object.
		if strings.Contains(cause.Message, "some validation rules were not checked") {
			continue
		}
		out[cause.Field] += cause.Message + "\n"
	}
	return out
}

func keys(m map[string]string) []string {
	return slices.Sorted(maps.Keys(m))
}
