// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// An application developer may list no ledgers, and got an error in place of the usual namespace.
func TestFindSystem(t *testing.T) {
	ledgerIn := func(namespace string) client.Object {
		return &v1alpha1.RemediationLedger{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "production"}}
	}
	webhookIn := func(namespace string) client.Object {
		labels := map[string]string{"app.kubernetes.io/name": "plumbline", "app.kubernetes.io/component": "webhook"}
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "plumbline-webhook", Labels: labels}}
	}
	away := errors.New("connection refused")
	for name, tc := range map[string]struct {
		objects   []client.Object
		forbidden []string
		broken    string
		want      string
		err       string
	}{
		"the ledgers tell it":                               {objects: []client.Object{ledgerIn("guards"), webhookIn("other")}, want: "guards"},
		"without permission for ledgers Deployments do":     {objects: []client.Object{ledgerIn("guards"), webhookIn("guards")}, forbidden: []string{"RemediationLedgerList"}, want: "guards"},
		"without any permission it is the usual one":        {objects: []client.Object{ledgerIn("guards"), webhookIn("guards")}, forbidden: []string{"RemediationLedgerList", "DeploymentList"}, want: SystemNamespace},
		"an empty cluster has the usual one":                {want: SystemNamespace},
		"two installations are told":                        {objects: []client.Object{webhookIn("b"), webhookIn("a")}, forbidden: []string{"RemediationLedgerList"}, err: (&SeveralSystemsError{Namespaces: []string{"a", "b"}}).Error()},
		"a server that does not answer is no missing right": {broken: "DeploymentList", forbidden: []string{"RemediationLedgerList"}, err: away.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := errors.Join(v1alpha1.AddToScheme(scheme), appsv1.AddToScheme(scheme)); err != nil {
				t.Fatal(err)
			}
			api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(tc.objects...).WithInterceptorFuncs(interceptor.Funcs{
				List: func(ctx context.Context, api client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
					gvk, err := api.GroupVersionKindFor(list)
					switch {
					case err != nil:
						return err
					case gvk.Kind == tc.broken:
						return away
					case slices.Contains(tc.forbidden, gvk.Kind):
						return apierrors.NewForbidden(schema.GroupResource{Resource: gvk.Kind}, "", nil)
					}
					return api.List(ctx, list, options...)
				},
			}).Build()
			got, err := FindSystem(t.Context(), api)
			if said := fmt.Sprint(err); got != tc.want || (err != nil || tc.err != "") && said != tc.err {
				t.Errorf("got %q and %v, want %q and %q", got, err, tc.want, tc.err)
			}
		})
	}
}
