// SPDX-License-Identifier: Apache-2.0

//go:build integration

package injection

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
	"github.com/plumbline-dev/plumbline/test/harness/server"
)

// patience bounds every wait.
const patience = 90 * time.Second

// What all tests share. Each works in namespaces of its own.
var (
	config *rest.Config
	kube   *kubernetes.Clientset
	admin  client.Client
	hook   *webhook
)

func TestMain(m *testing.M) {
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "integration tests of the injection:", err)
		code = 1
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	ctrllog.SetLogger(logr.Discard())
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	directory, err := os.MkdirTemp("", "plinj")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(directory)) }()
	if err := server.Build(ctx, directory, "webhook"); err != nil {
		return 1, err
	}
	// As in every cluster: pods have an account, and its token mounted.
	withAccounts := func(s *envtest.Environment) {
		s.ControlPlane.GetAPIServer().Configure().Disable("disable-admission-plugins")
	}
	env, err := apiserver.Start(withAccounts)
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, env.Stop()) }()
	config = env.Config
	config.WarningHandler = rest.NoWarnings{} // They are looked at where a test wants some.
	controllers, err := startControllers(directory, env)
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, controllers.Stop(context.WithoutCancel(ctx))) }()
	if err := install(ctx, directory); err != nil {
		return 1, err
	}
	// Not bound now: a test stops it and starts another.
	defer func() { err = errors.Join(err, hook.process.Stop()) }()
	return m.Run(), nil
}

// startControllers runs those that make pods.
func startControllers(directory string, env *envtest.Environment) (*apiserver.Controllers, error) {
	kubeconfig := filepath.Join(directory, "controllers.kubeconfig")
	if err := os.WriteFile(kubeconfig, env.KubeConfig, 0o600); err != nil {
		return nil, err
	}
	return apiserver.StartControllers(directory, kubeconfig, "deployment-controller", "replicaset-controller", "statefulset-controller",
		"job-controller", "cronjob-controller", "serviceaccount-controller", "root-ca-certificate-publisher-controller")
}

// install installs the chart, with its webhook on this machine.
func install(ctx context.Context, directory string) (err error) {
	if admin, err = client.New(config, client.Options{Scheme: scheme.Scheme}); err != nil {
		return err
	}
	if kube, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	helm, err := rendered.Find(ctx)
	if err != nil {
		return err
	}
	objects, err := apiserver.Render(ctx, helm, "--set", "mesh.enabled=true")
	if err != nil {
		return err
	}
	if err := apiserver.Install(ctx, admin, objects, "Secret", "ConfigMap"); err != nil {
		return err
	}
	if hook, err = newWebhook(directory, objects); err != nil {
		return err
	}
	if err := hook.register(ctx, objects); err != nil {
		return err
	}
	return hook.start(ctx)
}

// namespace makes one with labels and waits for the account of its pods.
func namespace(t *testing.T, labels map[string]string) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "t-", Labels: labels}}
	if err := admin.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	awaitAccount(t, ns.Name)
	return ns.Name
}

func awaitAccount(t *testing.T, namespace string) {
	t.Helper()
	poll.Until(t, patience, "pods of the namespace have an account", func() error {
		return admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "default"}, &corev1.ServiceAccount{})
	})
}
