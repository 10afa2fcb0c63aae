// SPDX-License-Identifier: Apache-2.0

//go:build integration

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/plumbline-dev/plumbline/internal/cli"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/server"
)

// The API server is started once; each test has a namespace of its own.
var (
	kube       client.WithWatch
	kubeconfig string // of admin, a member of system:masters
	alice      string // of alice, who has only the rights a test gives her
	binDir     string // kubectl, the plugin and its completion
)

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard()) // as the command does
	log.SetLogger(logr.Discard())
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "integration tests of the plugin:", err)
		code = 1
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	assets, err := apiserver.Assets()
	if err != nil {
		return 1, err
	}
	dir, err := os.MkdirTemp("", "plumbline-cli")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	env, err := apiserver.Start(apiserver.WithKinds)
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, env.Stop()) }()
	if err := setUp(env, dir, assets); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

func setUp(env *envtest.Environment, dir, assets string) error {
	if err := errors.Join(v1alpha1.AddToScheme(scheme.Scheme), apiextensionsv1.AddToScheme(scheme.Scheme)); err != nil {
		return err
	}
	var err error
	if kube, err = client.NewWithWatch(env.Config, client.Options{}); err != nil {
		return err
	}
	kubeconfig, alice = filepath.Join(dir, "admin.kubeconfig"), filepath.Join(dir, "alice.kubeconfig")
	if err := errors.Join(apiserver.Enrol(env, kubeconfig, "admin", "system:masters"), apiserver.Enrol(env, alice, "alice")); err != nil {
		return err
	}
	binDir = filepath.Join(dir, "bin")
	return installPlugin(assets)
}

// installPlugin lays out a PATH as a user has it.
func installPlugin(assets string) error {
	if err := os.Mkdir(binDir, 0o755); err != nil {
		return err
	}
	const plugin = "kubectl-plumbline"
	return errors.Join(
		server.Build(context.Background(), binDir, plugin),
		os.Symlink(filepath.Join(assets, "kubectl"), filepath.Join(binDir, "kubectl")),
		os.Symlink(filepath.Join(binDir, plugin), filepath.Join(binDir, cli.CompletionName)),
	)
}

// newNamespace gives the test a namespace that nothing else uses.
func newNamespace(t *testing.T) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "cli-"}}
	must(t, kube.Create(t.Context(), namespace))
	return namespace.Name
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// answer is what a command line gave.
type answer struct {
	Code           int
	Stdout, Stderr string
}

// plumbline runs the plugin in this process.
func plumbline(ctx context.Context, config, namespace, stdin string, args ...string) answer {
	var out, errOut bytes.Buffer
	args = append([]string{"--kubeconfig", config, "-n", namespace}, args...)
	code := cli.Run(ctx, args, cli.Environment{
		In: bytes.NewBufferString(stdin), Out: &out, Err: &errOut, Now: time.Now, Version: "test",
	})
	return answer{Code: code, Stdout: out.String(), Stderr: errOut.String()}
}
