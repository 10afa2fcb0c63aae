// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/plumbline-dev/plumbline/pkg/notify"
)

func TestResolve(t *testing.T) {
	live := fake.NewClientBuilder().WithObjects(
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "plumbline-system", Name: "hook"}, Data: map[string][]byte{"url": []byte("https://a")}},
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "plumbline-system", Name: "lent", Annotations: map[string]string{"plumbline.dev/notification-namespaces": "pay, shop"}},
			Data:       map[string][]byte{"url": []byte("https://c")},
		},
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "plumbline-system", Name: "free", Annotations: map[string]string{"plumbline.dev/notification-namespaces": "*"}},
			Data:       map[string][]byte{"url": []byte("https://d")},
		},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "other"}, Data: map[string][]byte{"url": []byte("https://b")}},
	).Build()
	tests := map[string]struct {
		only  []string
		ref   notify.SecretRef
		want  string
		fault string
	}{
		"a key":                                      {nil, notify.SecretRef{Name: "hook", Key: "url"}, "https://a", ""},
		"a key of a Secret that is listed":           {[]string{"hook"}, notify.SecretRef{Name: "hook", Key: "url"}, "https://a", ""},
		"a Secret that is not listed":                {[]string{"chat"}, notify.SecretRef{Name: "hook", Key: "url"}, "", "does not list the Secret"},
		"with a list that is empty":                  {[]string{}, notify.SecretRef{Name: "hook", Key: "url"}, "", "does not list the Secret"},
		"a key that is not there":                    {nil, notify.SecretRef{Name: "hook", Key: "key"}, "", "has no key key"},
		"a Secret that a tenant may name":            {nil, notify.SecretRef{Name: "lent", Key: "url", ForNamespace: "shop"}, "https://c", ""},
		"a Secret that each tenant may name":         {nil, notify.SecretRef{Name: "free", Key: "url", ForNamespace: "shop"}, "https://d", ""},
		"a Secret that other tenants may name":       {nil, notify.SecretRef{Name: "lent", Key: "url", ForNamespace: "sho"}, "", "plumbline.dev/notification-namespaces does not list namespace sho"},
		"a Secret that no tenant may name":           {nil, notify.SecretRef{Name: "hook", Key: "url", ForNamespace: "shop"}, "", "does not list namespace shop"},
		"a Secret that the platform itself may name": {nil, notify.SecretRef{Name: "lent", Key: "url"}, "https://c", ""},
		"a Secret of another namespace":              {nil, notify.SecretRef{Name: "other", Key: "url"}, "", "not found"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Reader{Live: live, Namespace: "plumbline-system", Only: tc.only}.Resolve(t.Context(), tc.ref)
			if got != tc.want || (err != nil) != (tc.fault != "") || err != nil && !strings.Contains(err.Error(), tc.fault) {
				t.Errorf("got %q and %v, want %q and %q", got, err, tc.want, tc.fault)
			}
		})
	}
}
