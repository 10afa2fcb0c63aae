// SPDX-License-Identifier: Apache-2.0

//go:build integration

package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/chart/rendered"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/server"
)

const (
	// The chart's service accounts.
	assessorUser = "system:serviceaccount:plumbline-system:plumbline-assessor"
	webhookUser  = "system:serviceaccount:plumbline-system:plumbline-webhook"
	// people is a group that may do anything a role can give.
	people = "people"
	// patience bounds every wait.
	patience = 60 * time.Second
)

var (
	// binaries is the directory of our programs.
	binaries string
	// manifest is what the chart installs by default.
	manifest []*unstructured.Unstructured
	// shared is the cluster of all tests that do not break the API server itself.
	shared *cluster
)

// cluster is an API server with the chart's kinds, roles and policies, and none
// of its pods or webhook configurations.
type cluster struct {
	server *envtest.Environment
	config *rest.Config
	admin  client.Client
}

func TestMain(m *testing.M) {
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		code = 1
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	if err := v1alpha1.AddToScheme(scheme.Scheme); err != nil {
		return 1, fmt.Errorf("adding our kinds to the scheme: %w", err)
	}
	if binaries, err = os.MkdirTemp("", "faults"); err != nil {
		return 1, fmt.Errorf("making a directory for the binaries: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(binaries)) }()
	if err := server.Build(ctx, binaries, "webhook", "assessor"); err != nil {
		return 1, err
	}
	helm, err := rendered.Find(ctx)
	if err != nil {
		return 1, err
	}
	out, err := helm.Template(ctx)
	if err != nil {
		return 1, err
	}
	if manifest, err = rendered.Objects(out); err != nil {
		return 1, err
	}
	if shared, err = startCluster(ctx); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, shared.server.Stop()) }()
	return m.Run(), nil
}

// startCluster starts one; the caller stops its server.
func startCluster(ctx context.Context) (*cluster, error) {
	s, err := apiserver.Start()
	if err != nil {
		return nil, err
	}
	c := &cluster{server: s, config: s.Config}
	if c.admin, err = client.New(c.config, client.Options{Scheme: scheme.Scheme}); err != nil {
		return nil, errors.Join(fmt.Errorf("building a client: %w", err), s.Stop())
	}
	if err := c.install(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return c, nil
}

// installed are the kinds of the chart's objects that need no pod. The Secret of
// the certificates is made by the chart and filled by the webhook.
var installed = []string{
	"CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "ServiceAccount", "Secret", "Lease",
	"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding",
	"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
}

func (c *cluster) install(ctx context.Context) error {
	if err := c.admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: rendered.Namespace}}); err != nil {
		return fmt.Errorf("creating Plumbline's namespace: %w", err)
	}
	everything := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: people},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: people}},
	}
	if err := c.admin.Create(ctx, everything); err != nil {
		return fmt.Errorf("binding cluster-admin: %w", err)
	}
	for _, object := range manifest {
		if rendered.IsHook(object) || !slices.Contains(installed, object.GetKind()) {
			continue
		}
		if err := c.admin.Create(ctx, object.DeepCopy()); err != nil {
			return fmt.Errorf("creating %s: %w", rendered.ID(object), err)
		}
	}
	return c.awaitStamp(ctx)
}

// awaitStamp waits until the writer policy is in force; it takes about a second.
func (c *cluster) awaitStamp(ctx context.Context) error {
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		probe := deployment("default", "probe")
		err := c.admin.Create(ctx, probe, client.DryRunAll)
		return probe.Annotations[v1alpha1.AnnotationWriter] != "", err
	})
	if err != nil {
		return fmt.Errorf("waiting for the writer policy to work: %w", err)
	}
	return nil
}

// writeKubeconfig makes a file with which a process acts as a user, at the API
// server's own address or another one.
func (c *cluster) writeKubeconfig(path, user, address string) error {
	if address == "" {
		address = c.config.Host
	}
	return clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"c": {Server: address, CertificateAuthorityData: c.config.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"u": {
			ClientCertificateData: c.config.CertData, ClientKeyData: c.config.KeyData, Impersonate: user,
		}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	}, path)
}

// startProcess starts one of our binaries as a user, until the test ends.
func (c *cluster) startProcess(t *testing.T, name, user string, args ...string) *server.Process {
	t.Helper()
	return c.startProcessAt(t, "", name, user, args...)
}

// startProcessAt is startProcess with another address of the API server.
func (c *cluster) startProcessAt(t *testing.T, address, name, user string, args ...string) *server.Process {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := c.writeKubeconfig(kubeconfig, user, address); err != nil {
		t.Fatal(err)
	}
	args = append([]string{"--kubeconfig=" + kubeconfig, "--namespace=" + rendered.Namespace}, args...)
	p, err := server.Start(filepath.Join(binaries, name), args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("what the %s said:\n%s", name, p.Said())
		}
	})
	return p
}
