// SPDX-License-Identifier: Apache-2.0

//go:build integration

package deny

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// firefighter is a user with edit whom somebody bound to plumbline-break-glass.
func (s shop) firefighter(t testing.TB) client.Client {
	t.Helper()
	b := &rbacv1.RoleBinding{
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "plumbline-break-glass"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "fred"}},
	}
	b.Namespace, b.Name = s.namespace, "break-glass"
	mustBind(t, b)
	return as(t, "fred", "tenants")
}

func TestBreakGlass(t *testing.T) {
	s, elsewhere := newShop(t, nil), newShop(t, nil)
	s.guarded(t)
	elsewhere.guarded(t)
	fred, tina, root := s.firefighter(t), tenant(t), as(t, "root", "roots")
	const paused = `{"paused":true}`
	stale := func(then act) act { return all(withReason(`"incident 7"`, `{"minReadySeconds":1}`), then) }
	tests := map[string]struct {
		shop    shop
		who     client.Client
		act     act
		refused string
	}{
		"the verb and a reason":                            {s, fred, withReason(`"incident 7"`, paused), ""},
		"the verb alone":                                   {s, fred, merge(`{"spec":` + paused + `}`), "may not change Deployment"},
		"a reason alone":                                   {s, tina, withReason(`"incident 7"`, paused), "may not change Deployment"},
		"the verb in another namespace":                    {elsewhere, fred, withReason(`"incident 7"`, paused), "may not change Deployment"},
		"the verb and a reason of an earlier write":        {s, fred, stale(merge(`{"spec":` + paused + `}`)), "may not change Deployment"},
		"the verb and the same reason once more":           {s, fred, stale(withReason(`"incident 7"`, paused)), "may not change Deployment"},
		"the verb and a new reason after an earlier one":   {s, fred, stale(withReason(`"incident 8"`, paused)), ""},
		"the verb and an empty reason":                     {s, fred, withReason(`""`, paused), "may not change Deployment"},
		"the verb and a reason of blanks":                  {s, fred, withReason(`"  \n "`, paused), "may not change Deployment"},
		"the verb and a reason of 512 characters":          {s, fred, withReason(`"`+strings.Repeat("é", 512)+`"`, paused), ""},
		"the verb and a reason of 513 characters":          {s, fred, withReason(`"`+strings.Repeat("x", 513)+`"`, paused), "at most 512 characters"},
		"the verb takes the reason off again":              {s, fred, stale(merge(`{"metadata":{"annotations":{"plumbline.dev/break-glass-reason":null}}}`)), ""},
		"the verb takes the reason off in a change":        {s, fred, stale(withReason(`null`, paused)), "may not change Deployment"},
		"the verb and a reason on a server-side apply":     {s, fred, applyWithReason, ""},
		"the verb and a reason for another owner":          {s, fred, merge(`{"metadata":{"annotations":{"plumbline.dev/break-glass-reason":"x"},"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"gone","uid":"gone"}]}}`), ""},
		"the verb and a reason for a new object":           {s, fred, createWithReason, ""},
		"a reason alone for a new object":                  {s, tina, createWithReason, "may not create Deployment"},
		"the verb through /scale":                          {s, fred, stale(scaleTo(3)), "Break-glass does not work through /scale"},
		"the verb deletes":                                 {s, fred, stale(remove()), "A deletion carries no reason"},
		"a cluster administrator without a reason":         {s, root, merge(`{"spec":` + paused + `}`), "may not change Deployment"},
		"a cluster administrator with one":                 {s, root, withReason(`"incident 7"`, paused), ""},
		"a trusted writer needs none, and may take it off": {s, as(t, ci), merge(`{"spec":` + paused + `,"metadata":{"annotations":null}}`), ""},
	}
	number := 0
	for name, test := range tests {
		number++
		objectName := fmt.Sprintf("web-%d", number)
		t.Run(name, func(t *testing.T) {
			d := test.shop.deployed(t, objectName)
			err := test.act(t.Context(), test.who, d)
			if test.refused == "" {
				wantAllowed(t, err)
				return
			}
			wantRefused(t, err, test.refused)
			var after appsv1.Deployment
			mustDo(t, admin.Get(t.Context(), client.ObjectKeyFromObject(d), &after))
			if after.Spec.Paused || after.DeletionTimestamp != nil {
				t.Errorf("the object was changed all the same: %+v", after)
			}
		})
	}
}

func applyWithReason(ctx ctx, c client.Client, d *appsv1.Deployment) error {
	body := `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"` + d.Name + `","annotations":{"plumbline.dev/break-glass-reason":"incident 7"}},"spec":{"paused":true}}`
	return patch(applyPatch, body, client.ForceOwnership, client.FieldOwner("fred"))(ctx, c, d)
}

func createWithReason(ctx ctx, c client.Client, d *appsv1.Deployment) error {
	next := deployment(d.Namespace, d.Name+"-more")
	next.Annotations = map[string]string{v1alpha1.AnnotationBreakGlassReason: "incident 7"}
	return c.Create(ctx, next)
}

// TestTheRoleIsInNoOther: edit and admin must not carry the verb along.
func TestTheRoleIsInNoOther(t *testing.T) {
	s := newShop(t, nil)
	for _, role := range []string{"view", "edit", "admin"} {
		var found rbacv1.ClusterRole
		mustDo(t, admin.Get(t.Context(), client.ObjectKey{Name: role}, &found))
		if len(found.Rules) == 0 {
			t.Fatalf("role %s is not aggregated yet", role)
		}
		for _, rule := range found.Rules {
			for _, verb := range rule.Verbs {
				if verb == "breakglass" || verb == "*" {
					t.Errorf("role %s has %s on %v", role, verb, rule.Resources)
				}
			}
		}
	}
	out, err := kubectl(t, "", "-n", s.namespace, "auth", "can-i", "breakglass", "baselines.plumbline.dev", "--as", "tina", "--as-group", "tenants")
	if err == nil || !strings.Contains(out, "no") {
		t.Errorf("a tenant may break the glass: %s", out)
	}
}
