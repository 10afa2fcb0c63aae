// SPDX-License-Identifier: Apache-2.0

//go:build integration

package deny

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	restart    = `"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"2026-01-02T03:04:05Z"}}}}`
	ownedByMap = `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"mine","uid":"u","controller":true}]}}`
	dangling   = `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"gone","uid":"gone"}]}}`
)

// TestATenantWithEdit tries, as a user with the ClusterRole edit in the
// namespace, whatever might change or remove a guarded object.
func TestATenantWithEdit(t *testing.T) {
	const (
		change, owners = "tina may not change Deployment ", "tina may not change the owners of Deployment "
		noReason       = "A deletion carries no reason"
	)
	tests := map[string]struct {
		act     act
		refused string // part of the message; empty: allowed
	}{
		"set image by strategic merge patch":                {setImage, change},
		"set image by JSON patch":                           {jsonPatch(`[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"x"}]`), change},
		"set image by server-side apply":                    {apply, change},
		"replace the object by PUT":                         {put, change},
		"set image in a dry run":                            {dryRun, change},
		"pause":                                             {merge(`{"spec":{"paused":true}}`), change},
		"change replicas on the object":                     {merge(`{"spec":{"replicas":5}}`), change},
		"remove replicas from the object":                   {merge(`{"spec":{"replicas":null}}`), ""}, // its default is what it was
		"/scale":                                            {scaleTo(5), "tina may not scale deployments "},
		"/scale to what it is":                              {scaleTo(1), ""},
		"change a label, which frees nothing":               {all(merge(`{"metadata":{"labels":{"app":null}}}`), setImage), change},
		"make a ConfigMap its controller":                   {merge(ownedByMap), owners},
		"make a ConfigMap its controller and set the image": {all(merge(ownedByMap[:len(ownedByMap)-1] + `,"spec":{"paused":true}}`)), change},
		"make a Deployment its controller":                  {merge(`{"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"x","uid":"u","controller":true}]}}`), owners},
		"give it an owner that does not exist, so that the garbage collector deletes it": {merge(dangling), owners},
		"delete":                                       {remove(), noReason},
		"delete in a dry run":                          {remove(client.DryRunAll), noReason},
		"delete in the foreground":                     {remove(client.PropagationPolicy(metav1.DeletePropagationForeground)), noReason},
		"delete and orphan":                            {remove(client.PropagationPolicy(metav1.DeletePropagationOrphan)), noReason},
		"delete the whole collection":                  {removeAll, noReason},
		"create a second object of the same name":      {createAgain, "tina may not create Deployment "},
		"create with a generated name":                 {createGenerated, "tina may not create Deployment "},
		"create with a Deployment as controller":       {createOwned, "tina may not create Deployment "},
		"add a finalizer, which frees nothing":         {all(merge(`{"metadata":{"finalizers":["example.com/stay"]}}`), remove()), noReason},
		"write a break-glass reason without the right": {merge(`{"metadata":{"annotations":{"plumbline.dev/break-glass-reason":"x"}}}`), "tina may not change the break-glass reason of Deployment "},
		"change with a reason, but without the right":  {withReason(`"because"`, `{"paused":true}`), change},
		"annotate":                                       {merge(`{"metadata":{"annotations":{"note":"x"}}}`), ""},
		"write what changes nothing":                     {merge(`{"spec":{"replicas":1}}`), ""},
		"forge the writer, which is put back":            {merge(`{"metadata":{"annotations":{"plumbline.dev/writer":"x"}}}`), ""},
		"rollout restart":                                {merge(`{` + restart + `}`), ""},
		"rollout restart, and take the mark off again":   {all(merge(`{`+restart+`}`), merge(strings.Replace(`{`+restart+`}`, `"2026-01-02T03:04:05Z"`, "null", 1))), ""},
		"rollout restart with another annotation":        {merge(`{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"x","sidecar":"evil"}}}}}`), change},
		"rollout restart with a label":                   {merge(`{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"x"},"labels":{"l":"v"}}}}}`), change},
		"rollout restart with another number of seconds": {merge(`{"spec":{"minReadySeconds":5,"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"x"}}}}}`), change},
		"rollout restart with another image":             {all(strategic(`{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"x"}},"spec":{"containers":[{"name":"app","image":"shop:2"}]}}}}`)), change},
		"hide an image behind more annotations than an expression can walk through": {strategic(hostile()), change},
	}
	s := newShop(t, nil)
	s.guarded(t)
	number := 0
	for name, test := range tests {
		number++
		objectName := fmt.Sprintf("web-%d", number)
		t.Run(name, func(t *testing.T) {
			d := s.deployed(t, objectName)
			err := test.act(t.Context(), tenant(t), d)
			if test.refused == "" {
				wantAllowed(t, err)
				return
			}
			wantRefused(t, err, test.refused, "Its trusted writers are: service account cicd/deployer.")
			var after appsv1.Deployment
			mustDo(t, admin.Get(t.Context(), client.ObjectKeyFromObject(d), &after))
			if after.UID != d.UID || after.DeletionTimestamp != nil || len(after.OwnerReferences) > 0 {
				t.Errorf("the object was touched all the same: %+v", after.ObjectMeta)
			}
			if diff := cmp.Diff(d.Spec, after.Spec); diff != "" {
				t.Errorf("the content was changed all the same (-before +after):\n%s", diff)
			}
		})
	}
}

// deployed is a Deployment that ci made.
func (s shop) deployed(t testing.TB, name string) *appsv1.Deployment {
	t.Helper()
	d := deployment(s.namespace, name)
	mustDo(t, as(t, ci).Create(t.Context(), d))
	return d
}

// hostile is a patch with as many annotations in the template as the API server
// takes, 256 KiB of them, and another image.
func hostile() string {
	var b strings.Builder
	b.WriteString(`{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"x"`)
	for i := range 50_000 {
		fmt.Fprintf(&b, `,"%x":""`, i)
	}
	b.WriteString(`}},"spec":{"containers":[{"name":"app","image":"shop:2"}]}}}}`)
	return b.String()
}

// TestStatusWriters: edit does not cover /status, but operators have it, and a
// write there may carry metadata along.
func TestStatusWriters(t *testing.T) {
	s := newShop(t, nil)
	s.guarded(t)
	s.allow(t, "operators", rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments/status"}, Verbs: []string{"*"}})
	operator := as(t, "otto", "operators")
	tests := map[string]struct {
		patch, refused string
	}{
		"status alone":                         {`{"status":{"replicas":1}}`, ""},
		"an annotation of others":              {`{"metadata":{"annotations":{"note":"x"}}}`, ""},
		"an owner that does not exist":         {dangling, "may not change the owners of Deployment"},
		"a forged writer":                      {`{"metadata":{"annotations":{"plumbline.dev/writer":"ci"}}}`, "cannot be changed through the status subresource"},
		"a break-glass reason for a later use": {`{"metadata":{"annotations":{"plumbline.dev/break-glass-reason":"x"}}}`, "cannot be changed through the status subresource"},
	}
	number := 0
	for name, test := range tests {
		number++
		objectName := fmt.Sprintf("web-%d", number)
		t.Run(name, func(t *testing.T) {
			err := patchStatus(test.patch)(t.Context(), operator, s.deployed(t, objectName))
			if test.refused == "" {
				wantAllowed(t, err)
			} else if err == nil || !strings.Contains(err.Error(), test.refused) {
				t.Errorf("got %v, want a refusal with %q", err, test.refused)
			}
		})
	}
	wantForbiddenByRole(t, patchStatus(`{"status":{"replicas":1}}`)(t.Context(), tenant(t), s.deployed(t, "of-a-tenant")))
}

// allow gives a group of the shop more rights than edit.
func (s shop) allow(t testing.TB, group string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	meta := metav1.ObjectMeta{Name: group, Namespace: s.namespace}
	mustDo(t, admin.Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules}))
	mustBind(t, &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: group},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: group}},
	})
}
