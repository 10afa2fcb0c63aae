// SPDX-License-Identifier: Apache-2.0

//go:build integration

package peers

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/procfs"
)

// The writers. Each may do everything that RBAC can allow.
const (
	trusted    = "system:serviceaccount:cicd:deployer"
	untrusted  = "alice"
	controller = "system:serviceaccount:kube-system:deployment-controller"
)

// patience bounds every wait.
const patience = 2 * time.Minute

// writersGroup has the rights of the writers.
const writersGroup = "writers"

// world is one API server and the processes beside it.
type world struct {
	config *rest.Config
	admin  client.Client
	// kubeconfig logs in as an administrator.
	kubeconfig string
	dir        string
	apiserver  int // the process
}

// newWorld starts an API server that ends with the benchmark.
func newWorld(b *testing.B) *world {
	b.Helper()
	ctrllog.SetLogger(logr.Discard())
	dir := b.TempDir()
	server, err := apiserver.Start(withRoom)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { report(b, server.Stop()) })
	w := &world{config: server.Config, dir: dir, kubeconfig: filepath.Join(dir, "kubeconfig")}
	w.config.QPS = -1
	w.config.WarningHandler = rest.NoWarnings{}
	if err := v1alpha1.AddToScheme(scheme.Scheme); err != nil {
		b.Fatal(err)
	}
	if w.admin, err = client.New(w.config, client.Options{Scheme: scheme.Scheme}); err != nil {
		b.Fatal(err)
	}
	if err := apiserver.Enrol(server, w.kubeconfig, "admin", "system:masters"); err != nil {
		b.Fatal(err)
	}
	if w.apiserver, err = procfs.FindChild("kube-apiserver"); err != nil {
		b.Fatal(err)
	}
	w.bindWriters(b)
	return w
}

// withRoom lets etcd keep each version of the large objects of a run.
func withRoom(server *envtest.Environment) {
	server.ControlPlane.Etcd.Configure().Set("quota-backend-bytes", fmt.Sprint(8<<30))
}

func (w *world) bindWriters(b *testing.B) {
	b.Helper()
	binding := &rbacv1.ClusterRoleBinding{
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: writersGroup}},
	}
	binding.Name = writersGroup
	if err := w.admin.Create(b.Context(), binding); err != nil {
		b.Fatal(err)
	}
	if err := apiserver.AwaitBound(b.Context(), w.admin, binding.Subjects[0], "", binding.RoleRef); err != nil {
		b.Fatal(err)
	}
}

// report makes an error of a cleanup a failure.
func report(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Error(err)
	}
}

func eventually(b *testing.B, what string, check func() error) {
	b.Helper()
	poll.Until(b, patience, what, check)
}
