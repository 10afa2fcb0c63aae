// SPDX-License-Identifier: Apache-2.0

package blame

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

func TestBlame_BreakGlass(t *testing.T) {
	because := func(f v1alpha1.Finding, reason string) v1alpha1.Finding {
		f.Actor.BreakGlassReason = reason
		return f
	}
	b := clitest.BaselineOf("web", clitest.Drifted(
		because(clitest.Found("/spec/replicas", "1", "5", "alice", time.Hour), "incident 7"),
		because(clitest.Found("/spec/paused", "", "true", "alice", time.Hour), "incident 7"),
		because(clitest.Found("/spec/minReadySeconds", "", "1", "bob", time.Hour), "two\nlines \x1b[31mand color"),
		clitest.Found("/spec/template", "", "{}", "carol", time.Hour),
	))
	got := clitest.Cluster{Objects: []client.Object{b}}.Run(t, verbs, "", "blame", "deployment/web")
	if got.Code != 0 {
		t.Fatalf("exit %d: %s", got.Code, got.Stderr)
	}
	if n := strings.Count(got.Stdout, "Break-glass: alice, \"incident 7\"\n"); n != 1 {
		t.Errorf("alice's reason stands there %d times, want once for one write:\n%s", n, got.Stdout)
	}
	if !strings.Contains(got.Stdout, "Break-glass: bob, \"two") || strings.ContainsAny(got.Stdout, "\x1b") || strings.Contains(got.Stdout, "\nlines") {
		t.Errorf("a reason moves the terminal:\n%q", got.Stdout)
	}
	if strings.Contains(got.Stdout, "Break-glass: carol") {
		t.Errorf("carol gave no reason:\n%s", got.Stdout)
	}
	structured := clitest.Cluster{Objects: []client.Object{b}}.Run(t, verbs, "", "blame", "deployment/web", "-o", "json")
	if !strings.Contains(structured.Stdout, `"breakGlassReason": "incident 7"`) {
		t.Errorf("JSON lacks the reason:\n%s", structured.Stdout)
	}
}

func TestBlame_Golden(t *testing.T) {
	cases := map[string][]string{
		"blame":     {"blame", "deployment/web"},
		"blamewide": {"blame", "deployment", "fought", "-o", "wide"},
		"blamejson": {"blame", "deployment/web", "-o", "json"},
		"blamenew":  {"blame", "deployment/new"},
		"blamepod":  {"blame", "deployment/pod"},
	}
	for name, args := range cases {
		t.Run(name, func(t *testing.T) {
			unexpected := clitest.Found("", "", "", "bob", time.Minute)
			unexpected.Operation = v1alpha1.OperationAdded
			made := clitest.BaselineOf("pod", clitest.Drifted(unexpected), func(b *v1alpha1.Baseline) { b.Spec.Authorized = nil })
			got := clitest.Cluster{Objects: append(clitest.Fleet(), made)}.Run(t, verbs, "", args...)
			if got.Code != 0 || got.Stderr != "" {
				t.Errorf("%q gave %d, %s", args, got.Code, got.Stderr)
			}
			golden.Check(t, filepath.Join("testdata", name+".txt"), got.Stdout)
		})
	}
}

// A state that a run authorized names the user who asked, and the run.
func TestBlame_NamesTheRunThatAuthorized(t *testing.T) {
	b := clitest.BaselineOf("web", func(b *v1alpha1.Baseline) {
		b.Spec.Authorized.By, b.Spec.Authorized.Release = "ada", &v1alpha1.AuthorizedRelease{Name: "pay", Run: 7, WorkName: "pay-7-4"}
	})
	got := clitest.Cluster{Objects: []client.Object{b}}.Run(t, verbs, "", "blame", "deployment/web")
	if !strings.Contains(got.Stdout, "by ada by release pay, run 7, 120m ago") {
		t.Errorf("it says:\n%s%s", got.Stdout, got.Stderr)
	}
	structured := clitest.Cluster{Objects: []client.Object{b}}.Run(t, verbs, "", "blame", "deployment/web", "-o", "json")
	if !strings.Contains(structured.Stdout, `"workName": "pay-7-4"`) {
		t.Errorf("JSON lacks the run:\n%s", structured.Stdout)
	}
}

// A change that an exception excuses shows the ticket, the author and the end of the exception.
func TestBlame_ShowsTheTicketOfAnException(t *testing.T) {
	masks := func(b *v1alpha1.Baseline) {
		for _, name := range []string{"hotfix", "hotfix", "old"} {
			b.Status.Masks = append(b.Status.Masks, v1alpha1.Mask{Path: "/spec/replicas", Rule: specguard.ExceptionRule(name), Actor: v1alpha1.Actor{User: "bob"}})
		}
		b.Status.Masks = append(b.Status.Masks, v1alpha1.Mask{Path: "/spec/paused", Rule: "spec.expectedWriters[0]", Actor: v1alpha1.Actor{User: "hpa"}})
	}
	hotfix := &v1alpha1.SpecGuardException{
		ObjectMeta: metav1.ObjectMeta{Namespace: clitest.BaselineOf("web").GetNamespace(), Name: "hotfix"},
		Spec:       v1alpha1.SpecGuardExceptionSpec{Ticket: "INC-7", Reason: "two\nlines", RequestedBy: "ada", EndTime: metav1.Date(2026, 12, 24, 18, 0, 0, 0, time.UTC)},
	}
	cluster := clitest.Cluster{Objects: []client.Object{clitest.BaselineOf("web", masks), hotfix}}
	got := cluster.Run(t, verbs, "", "blame", "deployment/web")
	for _, want := range []string{"Exception hotfix: ticket INC-7, by ada, until 2026-12-24T18:00:00Z: \"two\\nlines\"\n", "Exception old: it is gone\n"} {
		if strings.Count(got.Stdout, want) != 1 {
			t.Errorf("%q does not stand there once:\n%s%s", want, got.Stdout, got.Stderr)
		}
	}
	if strings.Count(got.Stdout, "Exception ") != 2 {
		t.Errorf("a rule of the guard is no exception:\n%s", got.Stdout)
	}
	structured := cluster.Run(t, verbs, "", "blame", "deployment/web", "-o", "json")
	if !strings.Contains(structured.Stdout, `"ticket": "INC-7"`) {
		t.Errorf("JSON lacks the ticket:\n%s", structured.Stdout)
	}
}

// A user that may not read exceptions still sees the changes.
func TestBlame_WithoutTheRightToReadExceptions(t *testing.T) {
	b := clitest.BaselineOf("web", func(b *v1alpha1.Baseline) {
		b.Status.Masks = []v1alpha1.Mask{{Path: "/spec/replicas", Rule: specguard.ExceptionRule("hotfix"), Actor: v1alpha1.Actor{User: "bob"}}}
	})
	cluster := clitest.Cluster{Objects: []client.Object{b}, Hooks: interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		if _, is := o.(*v1alpha1.SpecGuardException); is {
			return apierrors.NewForbidden(v1alpha1.GroupVersion.WithResource("specguardexceptions").GroupResource(), key.Name, errors.New("no right"))
		}
		return c.Get(ctx, key, o, opts...)
	}}}
	got := cluster.Run(t, verbs, "", "blame", "deployment/web")
	if got.Code != 0 || !strings.Contains(got.Stdout, "Exception hotfix: you may not get specguardexceptions in namespace "+b.GetNamespace()) {
		t.Errorf("exit %d:\n%s%s", got.Code, got.Stdout, got.Stderr)
	}
}
