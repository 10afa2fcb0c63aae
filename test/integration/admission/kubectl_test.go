// SPDX-License-Identifier: Apache-2.0

//go:build integration

package admission

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// editor is what kubectl edit starts: it changes the image in place.
const editor = "#!/bin/sh\nsed -i 's#shop/web:1#shop/web:edited#' \"$1\"\n"

// Every way in which kubectl writes a Deployment.
func TestKubectlVerbs(t *testing.T) {
	script := filepath.Join(t.TempDir(), "editor")
	if err := os.WriteFile(script, []byte(editor), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBE_EDITOR", script)
	changed := webDeployment()
	changed.Spec.Template.Spec.Containers[0].Image = "shop/web:2"
	next := manifest(t, changed)

	const image = "/spec/template/spec/containers/[name=app]/image"
	tests := map[string]struct {
		args    []string
		stdin   string
		manager string // fieldManager of the record
		fields  []string
		benign  bool // no warning
		paused  bool // before the command
	}{
		"edit":                {args: []string{"edit", "deployment", "web"}, manager: "kubectl-edit", fields: []string{image}},
		"set image":           {args: []string{"set", "image", "deployment/web", "app=shop/web:2"}, manager: "kubectl-set", fields: []string{image}},
		"set env":             {args: []string{"set", "env", "deployment/web", "B=2"}, manager: "kubectl-set", fields: []string{"/spec/template/spec/containers/[name=app]/env/[name=B]"}},
		"set resources":       {args: []string{"set", "resources", "deployment/web", "--limits=cpu=1000m"}, manager: "kubectl-set", fields: []string{"/spec/template/spec/containers/[name=app]/resources/limits"}},
		"patch (merge)":       {args: []string{"patch", "deployment", "web", "--type=merge", "-p", `{"spec":{"paused":true}}`}, manager: "kubectl-patch", fields: []string{"/spec/paused"}},
		"patch (json)":        {args: []string{"patch", "deployment", "web", "--type=json", "-p", `[{"op":"replace","path":"/spec/replicas","value":3}]`}, manager: "kubectl-patch", fields: []string{"/spec/replicas"}},
		"apply":               {args: []string{"apply", "-f", "-"}, stdin: next, manager: "kubectl-client-side-apply", fields: []string{image}},
		"apply --server-side": {args: []string{"apply", "--server-side", "--force-conflicts", "-f", "-"}, stdin: next, manager: "kubectl", fields: []string{image}},
		"replace":             {args: []string{"replace", "-f", "-"}, stdin: next, manager: "kubectl-replace", fields: []string{image}},
		"rollout pause":       {args: []string{"rollout", "pause", "deployment/web"}, manager: "kubectl-rollout", fields: []string{"/spec/paused"}},
		"rollout resume":      {args: []string{"rollout", "resume", "deployment/web"}, manager: "kubectl-rollout", fields: []string{"/spec/paused"}, paused: true},
		"rollout restart":     {args: []string{"rollout", "restart", "deployment/web"}, manager: "kubectl-rollout", fields: []string{"/spec/template/metadata/annotations"}, benign: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, unchanged)
			p.deploy(ci, func(d *appsv1.Deployment) { d.Spec.Paused = tc.paused })
			_, stderr := p.mustKubectl(alice, tc.stdin, tc.args...)
			p.mustBeStamped(alice)
			if warned := strings.Contains(stderr, "Warning: plumbline:"); warned == tc.benign {
				t.Errorf("warned %v, want %v; stderr %q", warned, !tc.benign, stderr)
			}
			body, _ := p.live()
			hash := hashOf(t, body)
			rec := p.waitRecord(name, func(r specguard.WriteRecord) bool { return r.User == alice && r.HashAfter == hash })
			if rec.FieldManager != tc.manager || rec.Operation != specguard.OperationUpdate {
				t.Errorf("record of %s by manager %q, want %q", rec.Operation, rec.FieldManager, tc.manager)
			}
			if diff := cmp.Diff(tc.fields, rec.Fields); diff != "" {
				t.Errorf("fields (-want +got)\n%s", diff)
			}
			if rec.ResourceVersionBefore == "" || rec.Generation != 2 || rec.UID == "" {
				t.Errorf("the record names no write: %+v", rec)
			}
		})
	}
}

func TestAGuardInModeAuditIsSilent(t *testing.T) {
	p := newPlace(t, func(s *v1alpha1.GuardSpec) { s.Mode = v1alpha1.GuardModeAudit })
	p.deploy(ci)
	audited := func() float64 {
		return w.hook.metric("plumbline_admission_reviews_total", `handler="validate"`, `operation="update"`, `verdict="audit"`, `actor_class="untrusted"`)
	}
	p.settle()
	before := audited()
	_, stderr := p.mustKubectl(alice, "", "set", "image", "deployment/web", "app=shop/web:2")
	if stderr != "" {
		t.Errorf("the writer was told: %q", stderr)
	}
	p.mustBeStamped(alice)
	rec := p.waitRecord("the change", func(r specguard.WriteRecord) bool { return r.User == alice })
	if diff := cmp.Diff([]string{"/spec/template/spec/containers/[name=app]/image"}, rec.Fields); diff != "" {
		t.Errorf("fields (-want +got)\n%s", diff)
	}
	if n := audited() - before; n != 1 {
		t.Errorf("%v reviews with the verdict audit, want 1", n)
	}
}

func TestKubectlScale(t *testing.T) {
	p := newPlace(t, unchanged)
	p.deploy(ci)
	_, stderr := p.mustKubectl(alice, "", "scale", "deployment/web", "--replicas=5")
	if !strings.Contains(stderr, "Warning: plumbline:") {
		t.Errorf("no warning: %q", stderr)
	}
	rec := p.waitRecord("the scale", func(r specguard.WriteRecord) bool { return r.Subresource == "scale" })
	if rec.Kind != "Deployment" || rec.Replicas == nil || *rec.Replicas != 5 || rec.User != alice || rec.HashAfter != "" {
		t.Errorf("record %+v", rec)
	}
	_, annotations := p.live()
	if annotations[v1alpha1.AnnotationWriter] != ci {
		t.Errorf("the writer stamp moved to %q; a scale cannot restamp", annotations[v1alpha1.AnnotationWriter])
	}
}

func TestKubectlScaleUnderALabeledGuard(t *testing.T) {
	p := newPlace(t, func(s *v1alpha1.GuardSpec) { s.Selector = selector("app", "web") })
	p.deploy(ci)
	_, stderr := p.mustKubectl(alice, "", "scale", "deployment/web", "--replicas=5")
	for _, want := range []string{
		"Warning: plumbline: if a guard selects this object by label, this change is drift unless it restores the baseline: /spec/replicas\n",
		`Warning: plumbline: "alice" is not trusted by SpecGuard/`,
	} {
		if !strings.Contains(stderr, want) {
			t.Errorf("%q is not in %q", want, stderr)
		}
	}
	p.waitRecord("the scale", func(r specguard.WriteRecord) bool { return r.Subresource == "scale" })
}

// A person who put drift back was warned that the change is drift.
func TestTheWarningOfAChangeThatRestoresTheBaselineIsTrue(t *testing.T) {
	p := newPlace(t, unchanged)
	p.deploy(ci)
	const image = "/spec/template/spec/containers/[name=app]/image"
	for _, to := range []string{"shop/web:2", "shop/web:1"} {
		_, stderr := p.mustKubectl(alice, "", "set", "image", "deployment/web", "app="+to)
		if want := "Warning: plumbline: this change is drift unless it restores the baseline: " + image + "\n"; !strings.Contains(stderr, want) {
			t.Errorf("%s: %q is not in %q", to, want, stderr)
		}
	}
}

func TestKubectlLabelAndAnnotate(t *testing.T) {
	p := newPlace(t, unchanged)
	p.deploy(ci)
	for _, args := range [][]string{{"label", "deployment", "web", "x=y"}, {"annotate", "deployment", "web", "x=y"}} {
		_, stderr := p.mustKubectl(alice, "", args...)
		if strings.Contains(stderr, "Warning") {
			t.Errorf("%v: %q", args, stderr)
		}
	}
	p.mustBeStamped(ci)
	p.marker()
	for _, r := range p.records() {
		if r.User == alice {
			t.Errorf("recorded %+v", r)
		}
	}
}

func TestKubectlReplaceForceAndDelete(t *testing.T) {
	p := newPlace(t, unchanged)
	p.deploy(ci)
	first := p.waitRecord("the creation", func(r specguard.WriteRecord) bool { return r.Operation == specguard.OperationCreate })
	_, stderr := p.mustKubectl(alice, manifest(t, webDeployment()), "replace", "--force", "-f", "-")
	if !strings.Contains(stderr, "Warning: plumbline:") {
		t.Errorf("no warning: %q", stderr)
	}
	p.mustBeStamped(alice)
	deleted := p.waitRecord("the deletion", func(r specguard.WriteRecord) bool { return r.Operation == specguard.OperationDelete })
	created := p.waitRecord("the new creation", func(r specguard.WriteRecord) bool {
		return r.Operation == specguard.OperationCreate && r.User == alice
	})
	if deleted.UID != first.UID || created.UID == first.UID || created.UID == "" {
		t.Errorf("uids: first %s, deleted %s, created %s", first.UID, deleted.UID, created.UID)
	}
	p.mustKubectl(alice, "", "delete", "deployment", "web")
	p.waitRecord("the deletion", func(r specguard.WriteRecord) bool {
		return r.Operation == specguard.OperationDelete && r.UID == created.UID && r.User == alice
	})
}

func TestKubectlDiffSeesOnlyTheChange(t *testing.T) {
	for _, flags := range [][]string{nil, {"--server-side"}} {
		p := newPlace(t, unchanged)
		m := webDeployment()
		p.mustKubectl(ci, manifest(t, m), append([]string{"apply", "-f", "-"}, flags...)...)
		p.marker()
		before := len(p.records())
		m.Annotations = map[string]string{v1alpha1.AnnotationSpecHash: "pl1:sha256:forged", v1alpha1.AnnotationWriter: "root"}
		for name, text := range map[string]string{"the same manifest": manifest(t, webDeployment()), "a manifest with a forged stamp": manifest(t, m)} {
			args := append([]string{"diff", "-f", "-"}, flags...)
			if flags != nil {
				args = append(args, "--force-conflicts")
			}
			if stdout, stderr, err := p.kubectl(alice, text, args...); err != nil {
				t.Errorf("%v %s: %v\n%s%s", flags, name, err, stdout, stderr)
			}
		}
		m.Annotations = nil
		m.Spec.Template.Spec.Containers[0].Image = "shop/web:2"
		args := append([]string{"diff", "-f", "-"}, flags...)
		if flags != nil {
			args = append(args, "--force-conflicts")
		}
		stdout, _, err := p.kubectl(alice, manifest(t, m), args...)
		if err == nil || !strings.Contains(stdout, "shop/web:2") {
			t.Errorf("%v: a real change does not show: %v %s", flags, err, stdout)
		}
		p.marker()
		if after := len(p.records()); after != before+1 {
			t.Errorf("%v: dry runs left %d records", flags, after-before-1)
		}
	}
}
