// SPDX-License-Identifier: Apache-2.0

//go:build integration

package admission

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/redis/go-redis/v9"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/server"
)

// The actors. Both may do everything that RBAC can allow.
const (
	alice = "alice"
	ci    = "system:serviceaccount:cicd:deployer"
)

const ownNamespace = "plumbline-system"

// world is what all tests share. Each test works in a namespace of its own.
type world struct {
	config     *rest.Config
	kube       *kubernetes.Clientset
	client     client.Client
	kubectl    string
	kubeconfig string
	binary     string
	redis      *server.Redis
	stream     *redis.Client
	hook       *process
}

var w world

func TestMain(m *testing.M) {
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "admission tests:", err)
		code = 1
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	ctrllog.SetLogger(logr.Discard())
	assets, err := apiserver.Assets()
	if err != nil {
		return 1, err
	}
	w.kubectl = filepath.Join(assets, "kubectl")
	dir, err := os.MkdirTemp("", "pladm")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	w.binary = filepath.Join(dir, "webhook")
	if err := server.Build(context.Background(), dir, "webhook"); err != nil {
		return 1, err
	}
	env, err := apiserver.Start(apiserver.WithKinds)
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, env.Stop()) }()
	w.config = env.Config
	w.config.WarningHandler = rest.NoWarnings{} // They are looked at where kubectl prints them.
	if err := prepare(env, dir); err != nil {
		return 1, err
	}
	// Not bound now: tests may replace both.
	defer func() { w.redis.Kill() }()
	defer func() { err = errors.Join(err, w.hook.Stop()) }()
	return m.Run(), nil
}

// prepare makes clients, people, Redis, and a webhook that is ready.
func prepare(env *envtest.Environment, dir string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := v1alpha1.AddToScheme(scheme.Scheme); err != nil {
		return err
	}
	var err error
	if w.kube, err = kubernetes.NewForConfig(w.config); err != nil {
		return err
	}
	if w.client, err = client.New(w.config, client.Options{Scheme: scheme.Scheme}); err != nil {
		return err
	}
	w.kubeconfig = filepath.Join(dir, "kubeconfig")
	if err := apiserver.Enrol(env, w.kubeconfig, "admin", "system:masters"); err != nil {
		return err
	}
	if err := w.client.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "everybody"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: alice}, {Kind: "User", APIGroup: rbacv1.GroupName, Name: ci}},
	}); err != nil {
		return err
	}
	if err := w.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ownNamespace}}); err != nil {
		return err
	}
	redisDir := filepath.Join(dir, "redis")
	if err := os.Mkdir(redisDir, 0o700); err != nil {
		return err
	}
	if w.redis, err = startRedis(ctx, redisDir); err != nil {
		return err
	}
	// The library's own time-outs and retries: a connection that died with Redis
	// is made anew.
	w.stream = w.redis.Client()
	port, err := freeport.Claim()
	if err != nil {
		return err
	}
	if err := createConfigurations(ctx, port); err != nil {
		return err
	}
	if w.hook, err = startWebhook(port, "replica-a"); err != nil {
		return err
	}
	return w.hook.Ready(ctx)
}
