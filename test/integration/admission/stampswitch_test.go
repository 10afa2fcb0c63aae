// SPDX-License-Identifier: Apache-2.0

//go:build integration

package admission

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	arv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
	"github.com/plumbline-dev/plumbline/test/harness/server"
)

// installation is what an upgrade of the chart with another policies.writerStamp changes.
type installation struct {
	*place
	replicas *replicas
	binary   string
	key      string
	assessor *server.Process
	policy   []*unstructured.Unstructured
	// kill ends the assessor of before without a word.
	kill bool
}

// newInstallation is one where the webhook stamps; it ends with the test.
func newInstallation(t *testing.T) *installation {
	t.Helper()
	i := &installation{replicas: startReplicas(t, 1)}
	dir := t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(server.Build(t.Context(), dir, "assessor"))
	i.binary, i.key = filepath.Join(dir, "assessor"), filepath.Join(dir, "key")
	must(os.WriteFile(i.key, []byte("a digest key of the tests"), 0o600))
	helm, err := rendered.Find(t.Context())
	must(err)
	objects, err := apiserver.Render(t.Context(), helm, "--set", "policies.writerStamp=Policy")
	must(err)
	i.policy = append(rendered.OfKind(objects, "MutatingAdmissionPolicy"), rendered.OfKind(objects, "MutatingAdmissionPolicyBinding")...)
	t.Cleanup(func() {
		i.setPolicy(false)
		i.validateUpdates(true)
	})
	i.place = newPlace(t, nil)
	i.startAssessor("--stamp-writer=true")
	t.Cleanup(func() {
		if err := i.assessor.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("the assessor said last:\n%s", i.assessor.Said())
		}
	})
	i.guard(unchanged)
	eventually(t, "the second of the guard is over", func() bool { return time.Now().Truncate(time.Second).After(i.made) })
	return i
}

// startAssessor starts one, and waits until it works.
func (i *installation) startAssessor(flags ...string) {
	i.t.Helper()
	p, err := server.Start(i.binary, append([]string{
		"--kubeconfig=" + w.kubeconfig, "--namespace=" + ownNamespace, "--leader-elect=false", "--api-server-metrics=0",
		"--digest-key-file=" + i.key, "--redis-address=" + w.redis.Socket, "--redis-timeout=" + redisTime.String(),
		"--guarded-resources=apps/v1/deployments",
	}, flags...)...)
	if err != nil {
		i.t.Fatal(err)
	}
	i.assessor = p
	ctx, cancel := context.WithTimeout(i.t.Context(), patience)
	defer cancel()
	if err := p.Ready(ctx); err != nil {
		i.t.Fatalf("%v\n%s", err, p.Said())
	}
}

// rollAssessor replaces the assessor by one with other flags.
func (i *installation) rollAssessor(flags ...string) {
	i.t.Helper()
	end := i.assessor.Stop
	if i.kill {
		end = i.assessor.Kill
	}
	if err := end(); err != nil {
		i.t.Fatal(err)
	}
	i.startAssessor(flags...)
}

// rollWebhook replaces the webhook by one that stamps the writer, or does not, without a
// gap.
func (i *installation) rollWebhook(stamps bool) {
	i.t.Helper()
	ctx, cancel := context.WithTimeout(i.t.Context(), patience)
	defer cancel()
	before := i.replicas.hooks[0]
	next, err := i.replicas.start(ctx, fmt.Sprintf("--stamp-writer=%t", stamps))
	if err != nil {
		i.t.Fatal(err)
	}
	i.replicas.service.set(next.port)
	w.hook, i.replicas.hooks = next, []*process{next}
	before.stop(i.t)
}

// setPolicy makes the policy and its binding, or deletes them.
func (i *installation) setPolicy(there bool) {
	i.t.Helper()
	for _, o := range i.policy {
		o = o.DeepCopy()
		var err error
		if there {
			err = w.client.Create(context.WithoutCancel(i.t.Context()), o)
		} else {
			err = client.IgnoreNotFound(w.client.Delete(context.WithoutCancel(i.t.Context()), o))
		}
		if err != nil {
			i.t.Error(err)
		}
	}
}

// validateUpdates has the validating webhook called for updates, as where the webhook
// stamps, or not.
func (i *installation) validateUpdates(updates bool) {
	i.t.Helper()
	ctx := context.WithoutCancel(i.t.Context())
	v := &arv1.ValidatingWebhookConfiguration{}
	err := w.client.Get(ctx, types.NamespacedName{Name: "plumbline"}, v)
	if err == nil {
		operations := []arv1.OperationType{arv1.Create, arv1.Delete}
		if updates {
			operations = append(operations, arv1.Update)
		}
		for n := range 3 { // the rules of objects; the others are of subresources
			v.Webhooks[0].Rules[n].Operations = operations
		}
		err = w.client.Update(ctx, v)
	}
	if err != nil {
		i.t.Error(err)
	}
}

// seenUnderThePolicy waits until the assessor has seen each object under the policy.
func (i *installation) seenUnderThePolicy() {
	i.t.Helper()
	last := ""
	defer func() {
		if i.t.Failed() {
			i.t.Log(last)
		}
	}()
	eventually(i.t, "each object was seen under the policy", func() bool {
		list := &v1alpha1.BaselineList{}
		err := w.client.List(i.t.Context(), list, client.InNamespace(i.namespace))
		unseen := 0
		for n := range list.Items {
			if list.Items[n].Status.Observed.StampPolicy == "" {
				unseen++
			}
		}
		last = fmt.Sprintf("%d of %d are not (%v)", unseen, len(list.Items), err)
		return err == nil && unseen == 0
	})
}

// The chart is upgraded from Webhook to Both, to Policy, to Both and to Webhook, in the
// order in which Helm and the Deployments go: configurations and policies at once, then
// the pods.
func TestASwitchOfTheStampMakesNoTrustedWriteDriftAndAuthorizesNoForeignOne(t *testing.T) {
	rotation.Share(t, 3)
	i := newInstallation(t)
	x := startTraffic(i.place)
	opened := failOpen(t)
	x.check("while the webhook stamps")

	i.setPolicy(true)
	i.rollAssessor("--stamp-writer=true", "--stamp-policy=true")
	i.seenUnderThePolicy()
	x.check("from the webhook to both")

	i.validateUpdates(false)
	i.rollWebhook(false)
	i.kill = true
	i.rollAssessor("--stamp-writer=false")
	i.kill = false
	x.check("from both to the policy")
	i.seenUnderThePolicy()
	x.check("while the policy stamps")

	i.validateUpdates(true)
	i.rollAssessor("--stamp-writer=true", "--stamp-policy=true")
	i.rollWebhook(true)
	i.seenUnderThePolicy()
	x.check("from the policy to both")

	i.setPolicy(false)
	i.rollAssessor("--stamp-writer=true")
	x.check("from both to the webhook")

	x.stop()
	if n := failOpen(t) - opened; n != 0 {
		t.Errorf("the API server went on without the webhook %v times", n)
	}
	x.settle("at the end")
	x.check("at the end")
	trusted, foreign := x.counts()
	t.Logf("%d writes by CI, %d objects written by alice", trusted, foreign)
}
