// SPDX-License-Identifier: Apache-2.0

//go:build integration

package assess

import (
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// exception is one of olga's for the image and the replicas of web.
func (w *world) exception(lasts time.Duration) *v1alpha1.SpecGuardException {
	e := &v1alpha1.SpecGuardException{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "hotfix"}}
	e.Spec.Resources, e.Spec.Names = []v1alpha1.GuardedResource{{APIVersion: "apps/v1", Kind: "Deployment"}}, []string{"web"}
	e.Spec.Paths, e.Spec.EndTime = []string{imagePath}, metav1.NewTime(time.Now().Add(lasts))
	e.Spec.Ticket, e.Spec.RequestedBy = "OPS-1", "olga"
	return e
}

// untilException waits until the exception has a reason of Ready and a number of objects.
func (w *world) untilException(e *v1alpha1.SpecGuardException, reason string, objects int32) {
	w.t.Helper()
	w.Eventually(fmt.Sprintf("the exception is %s for %d objects", reason, objects), func() error {
		if err := admin.Get(w.Ctx(), client.ObjectKeyFromObject(e), e); err != nil {
			return err
		}
		ready := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionReady)
		if ready == nil || ready.Reason != reason || e.Status.Objects != objects {
			return fmt.Errorf("its status is %+v", e.Status)
		}
		return nil
	})
}

func TestAnExceptionExcusesAChangeAndEndsByItself(t *testing.T) {
	w := newWorld(t)
	p := start(t)
	w.UnderGuard()
	w.Deploy(ci, "web")
	w.Deploy(ci, "cart")
	w.UntilIs("web", "InSync")
	w.UntilIs("cart", "InSync")
	e := w.exception(time.Hour)
	w.Must(w.As("olga").Create(w.Ctx(), e))
	w.untilException(e, "Active", 0)
	w.SetImage(mallory, "web", "registry.example/hotfix:1")
	w.SetImage(mallory, "cart", "registry.example/hotfix:1")
	w.UntilIs("cart", "Drifted: Changed "+imagePath+" by mallory (Untrusted, WriterStamp)")
	w.UntilIs("web", "InSync [exception/hotfix "+imagePath+"]")
	w.untilException(e, "Active", 1)
	// The end is moved to the next moment, and the clock does the rest.
	e.Spec.EndTime = metav1.NewTime(time.Now().Add(2 * time.Second))
	w.Must(w.As("olga").Update(w.Ctx(), e))
	w.UntilIs("web", "Drifted: Changed "+imagePath+" by mallory (Untrusted, WriterStamp)")
	w.untilException(e, "Ended", 0)
	w.Eventually("the metric counts an exception that has ended", func() error {
		all, err := p.figures()
		if n := all["plumbline_exceptions{state=Ended}"]; err == nil && n < 1 {
			err = fmt.Errorf("it counts %v", n)
		}
		return err
	})
}

func TestATenantsExceptionDoesNotWidenTheGuardOfThePlatform(t *testing.T) {
	w := newWorld(t)
	start(t)
	g := w.UnderClusterGuard(w.namespace)
	w.Deploy(ci, "web")
	w.UntilIs("web", "InSync")
	w.Must(w.As("olga").Create(w.Ctx(), w.exception(time.Hour)))
	w.SetImage(mallory, "web", "registry.example/hotfix:1")
	w.UntilIs("web", "Drifted: Changed "+imagePath+" by mallory (Untrusted, WriterStamp)")
	w.Must(admin.Get(w.Ctx(), client.ObjectKeyFromObject(g), g))
	g.Spec.Exceptions = v1alpha1.GuardExceptionsAllowed
	w.Must(admin.Update(w.Ctx(), g))
	w.UntilIs("web", "InSync [exception/hotfix "+imagePath+"]")
}

func TestAnExceptionIsMadeInTheNameOfItsAuthorAndForNinetyDaysAtMost(t *testing.T) {
	w := newWorld(t)
	start(t)
	create := func(user string, change func(*v1alpha1.SpecGuardException)) error {
		e := w.exception(time.Hour)
		e.Name = "tried"
		change(e)
		return w.As(user).Create(w.Ctx(), e, client.DryRunAll)
	}
	for name, test := range map[string]struct {
		user    string
		change  func(*v1alpha1.SpecGuardException)
		refused string
	}{
		"its author":     {"olga", func(*v1alpha1.SpecGuardException) {}, ""},
		"another author": {mallory, func(*v1alpha1.SpecGuardException) {}, "spec.requestedBy must be the authenticated user, mallory"},
		"ninety days": {"olga", func(e *v1alpha1.SpecGuardException) {
			e.Spec.EndTime = metav1.NewTime(time.Now().Add(90*24*time.Hour - time.Minute))
		}, ""},
		"a day more": {"olga", func(e *v1alpha1.SpecGuardException) {
			e.Spec.EndTime = metav1.NewTime(time.Now().Add(91 * 24 * time.Hour))
		}, "at most 90 days after the creation"},
		"the year 2400": {"olga", func(e *v1alpha1.SpecGuardException) { e.Spec.EndTime = metav1.Date(2400, 1, 1, 0, 0, 0, 0, time.UTC) }, "at most 90 days after the creation"},
	} {
		err := create(test.user, test.change)
		if test.refused == "" && err != nil || test.refused != "" && (err == nil || !strings.Contains(err.Error(), test.refused)) {
			t.Errorf("%s: %v, want %q", name, err, test.refused)
		}
	}
	e := w.exception(time.Hour)
	w.Must(w.As("olga").Create(w.Ctx(), e))
	e.Spec.Paths = []string{"/spec/template"}
	if err := w.As(mallory).Update(w.Ctx(), e); !apierrors.IsForbidden(err) {
		t.Errorf("mallory widens the exception in olga's name: %v", err)
	}
	e.Spec.RequestedBy = mallory
	w.Must(w.As(mallory).Update(w.Ctx(), e))
}
