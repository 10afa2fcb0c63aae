// SPDX-License-Identifier: Apache-2.0

//go:build integration

package execute

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/cli"
	"github.com/plumbline-dev/plumbline/internal/executor"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/evidence/bucket"
	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
)

// s3 is an S3 server in this process with one bucket.
type s3 struct {
	address string
	backend *s3mem.Backend
}

const bucketName = "evidence"

func newS3(t *testing.T) *s3 {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	backend := s3mem.New()
	if err := backend.CreateBucket(bucketName); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(gofakes3.New(backend).Server())
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		server.CloseClientConnections()
		server.Close()
	})
	return &s3{fmt.Sprintf("s3://%s?region=us-east-1&use_path_style=true&endpoint=%s", bucketName, server.URL), backend}
}

// records are kept there.
func (s *s3) records(t *testing.T) evidenceStore {
	t.Helper()
	store, err := bucket.Open(t.Context(), s.address)
	if err != nil {
		t.Fatal(err)
	}
	return evidenceIn(t, store)
}

// plugin is the plugin as a person runs it.
type plugin struct {
	w          *world
	kubeconfig string
}

func (w *world) plugin() plugin {
	w.t.Helper()
	path := filepath.Join(w.t.TempDir(), "kubeconfig")
	w.Must(apiserver.WriteKubeconfig(path, config, apiserver.Impersonating(config, platform, people, "system:authenticated")))
	return plugin{w, path}
}

// answers runs it, and checks its exit code and that its output has these texts.
func (p plugin) answers(code int, args []string, want ...string) {
	p.w.t.Helper()
	var out, errOut bytes.Buffer
	all := append([]string{"--kubeconfig", p.kubeconfig, "-n", p.w.Name}, args...)
	got := cli.Run(p.w.t.Context(), all, cli.Environment{In: &bytes.Buffer{}, Out: &out, Err: &errOut, Now: time.Now, Version: "test"})
	if got != code {
		p.w.t.Errorf("%q gave %d, want %d: %s%s", args, got, code, out.String(), errOut.String())
	}
	for _, text := range want {
		if !strings.Contains(out.String(), text) {
			p.w.t.Errorf("%q gave %s%s, which has no %q", args, out.String(), errOut.String(), text)
		}
	}
}

// forgetAll removes plans and ledgers of the tests before, of whose records this one
// knows nothing. Plans that are under way go as they do with their namespace.
func forgetAll(t *testing.T) {
	t.Helper()
	cleaner, err := apiserver.As(config, "system:serviceaccount:kube-system:namespace-controller")
	if err != nil {
		t.Fatal(err)
	}
	var plans v1alpha1.RemediationPlanList
	if err := admin.List(t.Context(), &plans); err != nil {
		t.Fatal(err)
	}
	for i := range plans.Items {
		if err := client.IgnoreNotFound(cleaner.Delete(t.Context(), &plans.Items[i])); err != nil {
			t.Fatal(err)
		}
	}
	if err := admin.DeleteAllOf(t.Context(), &v1alpha1.RemediationLedger{}, client.InNamespace("plumbline-system")); err != nil {
		t.Fatal(err)
	}
}

// A person steers plans by the plugin alone, the executor keeps its records in an S3
// bucket, and the plugin shows and verifies them there, against the API server's audit
// log.
func TestAPersonWithThePluginAndRecordsInABucket(t *testing.T) {
	rotation.Share(t, 3)
	forgetAll(t)
	startAssessor(t)
	w, store := newWorld(t), newS3(t)
	w.UnderGuard()
	w.Drifted("web")
	w.policy(slowly, busyWriters, func(s *v1alpha1.RemediationPolicySpec) { s.Trigger = v1alpha1.TriggerManual })
	plan, p := w.onlyPlan(), w.plugin()
	begin := time.Now().UTC().Format(time.RFC3339)
	records := store.records(t)
	w.keysPlace()
	startExecutor(t, records)
	w.published(records)

	w.UntilPlan(plan, "it waits for a person", func(p *v1alpha1.RemediationPlan) bool { return p.Status.Phase == v1alpha1.PlanDeferred })
	p.answers(0, []string{"plan", "list"}, plan.Name, "Deferred")
	p.answers(0, []string{"plan", "execute", plan.Name, "--reason", "agreed"}, plan.Name+" executed")
	w.UntilPlan(plan, "it has written", hasWritten)
	p.answers(0, []string{"plan", "pause", plan.Name}, plan.Name+" paused")
	if now := w.UntilPlan(plan, "it is paused", func(p *v1alpha1.RemediationPlan) bool { return p.Status.Phase == v1alpha1.PlanPaused }); now.Spec.Control.RequestedBy != platform {
		t.Errorf("it was paused by %q", now.Spec.Control.RequestedBy)
	}
	w.Rollouts()
	p.answers(0, []string{"plan", "resume", plan.Name}, plan.Name+" resumed")
	if plan = w.Ended(plan); plan.Status.Phase != v1alpha1.PlanSucceeded {
		t.Errorf("the plan is %s", remediation.Describe(plan))
	}
	p.answers(0, []string{"plan", "show", plan.Name}, "Succeeded", "1 succeeded", "deployment.apps/web")

	w.proven(records, plan)
	w.served(records)
	p.console(t, plan)
	p.evidence(store, plan, begin)
	p.consoleWhenGone(t, plan)
}

// keysConfigMap is where the executor publishes its public keys.
func keysConfigMap() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "plumbline-system", Name: executor.EvidenceConfigMap}}
}

// keysPlace makes it, as the chart does.
func (w *world) keysPlace() {
	w.t.Helper()
	w.Must(admin.Create(w.t.Context(), keysConfigMap()))
	w.t.Cleanup(func() {
		if err := admin.Delete(context.WithoutCancel(w.t.Context()), keysConfigMap()); err != nil {
			w.t.Errorf("removing the place of the keys: %v", err)
		}
	})
}

// published waits until the executor's public key can be read in the cluster.
func (w *world) published(records evidenceStore) {
	w.t.Helper()
	w.Eventually("the public key is published", func() error {
		found := keysConfigMap()
		if err := admin.Get(w.t.Context(), client.ObjectKeyFromObject(found), found); err != nil {
			return err
		}
		for _, content := range found.Data {
			if strings.Contains(content, strings.TrimSpace(string(records.public))) {
				return nil
			}
		}
		return fmt.Errorf("another one is")
	})
}

// evidence is shown and verified, and what somebody removed is missed.
func (p plugin) evidence(store *s3, plan *v1alpha1.RemediationPlan, begin string) {
	p.w.t.Helper()
	verify := []string{"evidence", "verify", "--evidence", store.address}
	audited := slices.Concat(verify, []string{"--audit-log", auditLog.Path(), "--since-time", begin})
	p.answers(0, []string{"evidence", "get", plan.Name, "--evidence", store.address},
		"Step 0 Reconcile: Verified", "acting with the permissions of "+platform, "Packet: ", "Targets:        1: 1 succeeded")
	p.answers(0, []string{"evidence", "get", plan.Name, "--evidence", store.address, "-o", "json"},
		`"averageTargetDuration": `, `"minimumSeverity": `, `"image": "registry.example/shop:1"`, `"image": "`+remediation.EvilImage+`"`)
	p.answers(0, verify, "Whole: ", "goes as far as the ledger says", "1 ended plan compared")
	p.answers(0, audited, "1 with their record", "and the writes in the audit log are those of the records.")
	removed := evidence.Name(plan.Spec.Plan.Policy.UID, plan.Status.Steps[0].Evidence.Sequence)
	if _, err := store.backend.DeleteObject(bucketName, removed); err != nil {
		p.w.t.Fatal(err)
	}
	p.answers(1, audited, "NOT WHOLE", "Gap ", "NotStored ", "WriteWithoutEvidence ")
	body := evidence.BodyName(plan.Spec.Plan.Policy.UID, exec.PlanDigest(&plan.Spec.Plan))
	if _, err := store.backend.DeleteObject(bucketName, body); err != nil {
		p.w.t.Fatal(err)
	}
	p.answers(1, verify, "BodyMissing ")
	p.answers(0, []string{"evidence", "get", plan.Name, "--evidence", store.address}, "the store lacks the body that the records name")
}
