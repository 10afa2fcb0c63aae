// SPDX-License-Identifier: Apache-2.0

//go:build integration

package admission

import (
	"context"
	"fmt"
	"os"
	"os/exec"
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
	redis      *redisServer
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
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		return 1, fmt.Errorf("KUBEBUILDER_ASSETS is not set; run make test-integration, which sets it")
	}
	w.kubectl = filepath.Join(assets, "kubectl")
	dir, err := os.MkdirTemp("", "pladm")
	if err != nil {
		return 1, err
	}
	defer func() { _ = os.RemoveAll(dir) }()

	w.binary = filepath.Join(dir, "webhook")
	build := exec.Command("go", "build", "-o", w.binary, "github.com/plumbline-dev/plumbline/cmd/webhook")
	if out, err := build.CombinedOutput(); err != nil {
		return 1, fmt.Errorf("building the webhook: %w\n%s", err, out)
	}
	env := &envtest.Environment{
		CRDDirectoryPaths:     []string{filepath.Join("..", "..", "..", "charts", "plumbline", "files", "crds")},
		ErrorIfCRDPathMissing: true,
	}
	if w.config, err = env.Start(); err != nil {
		return 1, fmt.Errorf("starting the API server: %w", err)
	}
	defer func() {
		if stopErr := env.Stop(); stopErr != nil && err == nil {
			err = stopErr
		}
	}()
	if err := prepare(env, dir); err != nil {
		return 1, err
	}
	// Not bound now: tests may replace both.
	defer func() { w.redis.kill() }()
	defer func() { w.hook.stop() }()
	return m.Run(), nil
}

// prepare makes clients, people, Redis, and a webhook that is ready.
func prepare(env *envtest.Environment, dir string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	w.config.QPS, w.config.Burst = 1000, 1000
	w.config.WarningHandler = rest.NoWarnings{} // They are looked at where kubectl prints them.
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
	admin, err := env.AddUser(envtest.User{Name: "admin", Groups: []string{"system:masters"}}, w.config)
	if err != nil {
		return err
	}
	raw, err := admin.KubeConfig()
	if err != nil {
		return err
	}
	w.kubeconfig = filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(w.kubeconfig, raw, 0o600); err != nil {
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
	if w.redis, err = startRedis(filepath.Join(dir, "redis")); err != nil {
		return err
	}
	// The library's own time-outs and retries: a connection that died with Redis
	// is made anew.
	w.stream = redis.NewClient(&redis.Options{Network: "unix", Addr: w.redis.socket, Protocol: 2, DisableIdentity: true})
	port, err := server.FreePort()
	if err != nil {
		return err
	}
	if err := createConfigurations(ctx, port); err != nil {
		return err
	}
	if w.hook, err = startWebhook(port, "replica-a"); err != nil {
		return err
	}
	return w.hook.waitReady(ctx)
}
