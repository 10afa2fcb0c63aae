// SPDX-License-Identifier: Apache-2.0

//go:build integration

package execute

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/chart/rendered"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
)

const (
	assessorUser = "system:serviceaccount:plumbline-system:plumbline-assessor"
	executorUser = "system:serviceaccount:plumbline-system:plumbline-executor"
	// patience bounds every wait.
	patience = 30 * time.Second
	// people is a group that may do anything a role can give.
	people = "people"
)

// One API server serves all tests; each has a namespace of its own.
var (
	config  *rest.Config
	admin   client.Client
	cluster *guarded.Cluster
	// auditLog is the API server's, with the bodies of what the executor writes.
	auditLog string
)

func TestMain(m *testing.M) {
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "integration tests of the executor:", err)
		code = 1
	}
	os.Exit(code)
}

// auditPolicy has the bodies of what is done to guarded objects.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: RequestResponse
    verbs: [create, update, patch, delete]
    resources: [{group: apps}, {group: batch}]
  - level: None
`

func withAudit(directory string) apiserver.Option {
	return func(server *envtest.Environment) {
		arguments := server.ControlPlane.GetAPIServer().Configure()
		arguments.Append("audit-policy-file", filepath.Join(directory, "policy.yaml"))
		arguments.Append("audit-log-path", auditLog)
	}
}

func runTests(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	helm, err := rendered.Find(ctx)
	if err != nil {
		return 1, err
	}
	directory, err := os.MkdirTemp("", "plumbline-execute-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(directory)) }()
	auditLog = filepath.Join(directory, "audit.log")
	if err := os.WriteFile(filepath.Join(directory, "policy.yaml"), []byte(auditPolicy), 0o600); err != nil {
		return 1, err
	}
	server, err := apiserver.Start(withAudit(directory))
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	config = server.Config
	config.QPS = -1
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
	cluster = &guarded.Cluster{Config: config, Admin: admin, People: people, Patience: patience}
	objects, err := apiserver.Render(ctx, helm, "--values", "testdata/values.yaml")
	if err != nil {
		return err
	}
	if err := apiserver.Bind(ctx, admin, people, "cluster-admin", people); err != nil {
		return err
	}
	if err := apiserver.Install(ctx, admin, objects); err != nil {
		return err
	}
	return apiserver.AwaitStamp(ctx, admin, patience)
}
