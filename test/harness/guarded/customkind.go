// SPDX-License-Identifier: Apache-2.0

package guarded

import (
	"context"
	"errors"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// InstallKind serves a custom kind, of version v1 and of any content, for the time of a
// test.
func (n *Namespace) InstallKind(group, kind, plural string, scope apiextensions.ResourceScope, changes ...func(*apiextensions.CustomResourceDefinition)) {
	n.t.Helper()
	types := runtime.NewScheme() // the scheme of all clients may be in use
	n.Must(apiextensions.AddToScheme(types))
	c, err := client.New(n.cluster.Config, client.Options{Scheme: types})
	n.Must(err)
	preserve := true
	crd := &apiextensions.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group},
		Spec: apiextensions.CustomResourceDefinitionSpec{
			Group: group, Scope: scope,
			Names: apiextensions.CustomResourceDefinitionNames{Kind: kind, Plural: plural, Singular: strings.ToLower(kind), ListKind: kind + "List"},
			Versions: []apiextensions.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensions.CustomResourceValidation{OpenAPIV3Schema: &apiextensions.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: &preserve,
				}},
			}},
		},
	}
	for _, change := range changes {
		change(crd)
	}
	n.Must(c.Create(n.Ctx(), crd))
	n.t.Cleanup(func() {
		if err := c.Delete(context.Background(), crd); err != nil {
			n.t.Errorf("removing the kind: %v", err)
		}
		// The next test may make the same kind; the test's own context is over.
		poll.Until(n.t, n.cluster.Patience, "the kind is gone", func() error {
			err := c.Get(context.Background(), client.ObjectKeyFromObject(crd), crd)
			switch {
			case err == nil:
				return errors.New("the kind is there")
			case apierrors.IsNotFound(err):
				return nil
			default:
				return err
			}
		})
	})
}
