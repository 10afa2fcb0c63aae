// SPDX-License-Identifier: Apache-2.0

//go:build integration

package admission

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/test/harness/child"
)

func TestADeadRedisCostsOnlyTheRecords(t *testing.T) {
	p := newPlace(t, unchanged)
	p.deploy(ci)
	w.redis.Kill()
	opened := failOpen(t)
	for n := range 20 {
		_, stderr := p.mustKubectl(alice, "", "set", "image", "deployment/web", "app=x:"+string(rune('a'+n)))
		if !strings.Contains(stderr, "Warning: plumbline:") {
			t.Errorf("stderr %q", stderr)
		}
	}
	p.mustBeStamped(alice)
	if n := failOpen(t) - opened; n != 0 {
		t.Errorf("the API server gave up on %v calls", n)
	}
	eventually(t, "the failure shows", func() bool { return w.hook.metric("plumbline_admission_records_redis_up") == 0 })
	again, err := startRedis(t.Context(), filepath.Dir(w.redis.Socket))
	if err != nil {
		t.Fatal(err)
	}
	w.redis = again
	eventually(t, "the webhook finds Redis again", func() bool { return w.hook.metric("plumbline_admission_records_redis_up") == 1 })
	p.mustKubectl(alice, "", "set", "image", "deployment/web", "app=x:again")
	p.waitRecord("a write after the restart", func(r specguard.WriteRecord) bool { return r.User == alice })
}

func TestAGuardThatCannotBeCompiledAffectsNoOther(t *testing.T) {
	p := newPlace(t, unchanged)
	bad := &v1alpha1.SpecGuard{
		ObjectMeta: metav1.ObjectMeta{Name: "bad", Namespace: p.namespace},
		Spec: v1alpha1.GuardSpec{
			Resources: []v1alpha1.GuardedResource{{APIVersion: "apps/v1", Kind: "Deployment"}},
			// A string to the schema, and no label value to the compiler.
			Selector: selector("app", "not a label value!"),
		},
	}
	if err := w.client.Create(t.Context(), bad); err != nil {
		t.Fatal(err) // If the schema ever refuses this, the case needs another defect.
	}
	defer func() {
		before := w.hook.metric("plumbline_guards")
		if err := w.client.Delete(t.Context(), bad); err != nil {
			t.Error(err)
		}
		eventually(t, "the bad guard is gone", func() bool { return w.hook.metric("plumbline_guards") == before-1 })
	}()
	eventually(t, "the bad guard is counted", func() bool { return w.hook.metric("plumbline_guards", `state="inert"`) == 1 })
	p.deploy(ci)
	p.mustBeStamped(ci)
}

func TestInstallTest(t *testing.T) {
	p := newPlace(t, func(s *v1alpha1.GuardSpec) { s.Selector = selector("plumbline.dev/install-test", "true") })
	var out bytes.Buffer
	cmd := child.Bind(exec.Command(w.binary, "install-test", "--kubeconfig="+w.kubeconfig, "--namespace="+p.namespace, "--timeout=30s"))
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil || strings.Count(out.String(), "ok: ") != 3 {
		t.Errorf("%v\n%s", err, &out)
	}
	out.Reset()
	other := newPlace(t, nil)
	cmd = child.Bind(exec.Command(w.binary, "install-test", "--kubeconfig="+w.kubeconfig, "--namespace="+other.namespace, "--timeout=1s"))
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err == nil || !strings.Contains(out.String(), "failed: the spec hash is stamped") {
		t.Errorf("without a guard: %v\n%s", err, &out)
	}
	list, err := w.kube.AppsV1().Deployments(p.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 0 {
		t.Errorf("the self test stored %d objects (%v)", len(list.Items), err)
	}
}
