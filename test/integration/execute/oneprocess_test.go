// SPDX-License-Identifier: Apache-2.0

//go:build integration

package execute

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
	"github.com/plumbline-dev/plumbline/test/harness/server"
)

// small is a cluster with the roles and policies of assessor.split=false.
func small(t *testing.T) (*guarded.Cluster, *remediation.AuditLog) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	audit, err := remediation.NewAuditLog(t.TempDir())
	must(err)
	api, err := apiserver.Start(remediation.WithAudit(audit))
	must(err)
	t.Cleanup(func() {
		if err := api.Stop(); err != nil {
			t.Errorf("stopping the API server: %v", err)
		}
	})
	api.Config.QPS = -1
	helm, err := rendered.Find(t.Context())
	must(err)
	objects, err := apiserver.Render(t.Context(), helm, "--set", "redis.enabled=false", "--set", "executor.enabled=true",
		"--set", "assessor.split=false", "--set", "assessor.replicas=1")
	must(err)
	client, err := client.New(api.Config, client.Options{Scheme: scheme.Scheme})
	must(err)
	must(apiserver.Bind(t.Context(), client, people, "cluster-admin", people))
	must(apiserver.Install(t.Context(), client, objects, "ConfigMap"))
	must(apiserver.AwaitStamp(t.Context(), client, patience))
	return &guarded.Cluster{Config: api.Config, Admin: client, People: people, Patience: patience}, audit
}

// both starts the binary as the chart does, with the one account and two leases.
func both(t *testing.T, c *guarded.Cluster) *server.Process {
	t.Helper()
	dir := t.TempDir()
	if err := server.Build(t.Context(), dir, "assessor"); err != nil {
		t.Fatal(err)
	}
	private, _, err := evidence.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	key, kubeconfig := filepath.Join(dir, "key.pem"), filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(key, private, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := apiserver.WriteKubeconfig(kubeconfig, c.Config, apiserver.Impersonating(c.Config, remediation.ExecutorUser)); err != nil {
		t.Fatal(err)
	}
	records := filepath.Join(dir, "records")
	if err := os.Mkdir(records, 0o700); err != nil {
		t.Fatal(err)
	}
	p, err := server.Start(filepath.Join(dir, "assessor"), "--role=assess,execute", "--leader-elect=true", "--kubeconfig="+kubeconfig,
		"--namespace="+rendered.Namespace, "--executor-user="+remediation.ExecutorUser, "--evidence=file://"+records, "--evidence-key-file="+key)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Kill() // it may have ended
		if t.Failed() {
			t.Logf("the process said:\n%s", p.Said())
		}
	})
	return p
}

// A small installation finds drift, makes the plan and carries it out in one
// process, whose one account the policies let do both.
func TestOneProcessFindsADriftAndPutsItBack(t *testing.T) {
	c, audit := small(t)
	p := both(t, c)
	if err := p.Ready(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, p.Said())
	}
	w := remediation.NewWorld(t, c, audit)
	w.Rollouts()
	w.UnderGuard()
	w.Drifted("web")
	w.PolicyBy(platform, w.Name, everything, func(s *v1alpha1.RemediationPolicySpec) {
		s.Exceptions.ActiveWriter = v1alpha1.Allowed // CI has only just deployed
	})
	w.UntilIs("web", "InSync")
	if image := w.Live("web").Spec.Template.Spec.Containers[0].Image; image != guarded.Image {
		t.Errorf("web runs %s", image)
	}
	var plans v1alpha1.RemediationPlanList
	poll.Confirmation.Until(t, patience, "its plan has succeeded", func() error {
		if err := c.Admin.List(t.Context(), &plans, client.InNamespace(w.Name)); err != nil {
			return err
		}
		if len(plans.Items) != 1 || plans.Items[0].Status.Phase != v1alpha1.PlanSucceeded {
			return fmt.Errorf("%d plans", len(plans.Items))
		}
		return nil
	})
	leads(t, p, "assessor")
	leads(t, p, "executor")
	endsWithoutALease(t, c, p)
}

// leads checks what the process tells of one of its parts.
func leads(t *testing.T, p *server.Process, part string) {
	t.Helper()
	code, body, err := p.Get(t.Context(), p.Metrics, "/metrics")
	if err != nil || code != http.StatusOK || !strings.Contains(body, "\nplumbline_"+part+"_leader 1\n") {
		t.Errorf("the %s does not lead: %d %v", part, code, err)
	}
}

// endsWithoutALease has somebody else take the executor's lease: then neither part
// goes on.
func endsWithoutALease(t *testing.T, c *guarded.Cluster, p *server.Process) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	poll.Until(t, patience, "the lease is somebody else's", func() error {
		var lease coordinationv1.Lease
		if err := c.Admin.Get(ctx, client.ObjectKey{Namespace: rendered.Namespace, Name: "plumbline-executor"}, &lease); err != nil {
			return err
		}
		lease.Spec.HolderIdentity, lease.Spec.RenewTime = new("somebody-else"), &metav1.MicroTime{Time: time.Now()}
		lease.Spec.LeaseDurationSeconds = new(int32(600))
		return c.Admin.Update(ctx, &lease)
	})
	poll.True(t, patience, "the process has ended, and says why", func() bool {
		_, _, err := p.Get(ctx, p.Health, "/healthz")
		return err != nil && strings.Contains(p.Said(), "error: executing: leader election lost")
	})
}
