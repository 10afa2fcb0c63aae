// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestQuestion_SelectsDrifts(t *testing.T) {
	web := v1alpha1.Baseline{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	cases := map[string]struct {
		question            Question
		namespace, baseline string
		want                bool
	}{
		"a drift of the namespace":         {Question{Namespace: "shop"}, "shop", "web", true},
		"a drift of another namespace":     {Question{Namespace: "shop"}, "bank", "web", false},
		"any drift, in all namespaces":     {Question{}, "bank", "web", true},
		"an object that is named":          {Question{Namespace: "shop", Objects: []v1alpha1.Baseline{web}}, "shop", "web", true},
		"an object that is not named":      {Question{Namespace: "shop", Objects: []v1alpha1.Baseline{web}}, "shop", "cart", false},
		"one of that name somewhere else":  {Question{Objects: []v1alpha1.Baseline{web}}, "bank", "web", false},
		"a name beats the namespace of it": {Question{Namespace: "bank", Objects: []v1alpha1.Baseline{web}}, "shop", "web", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.question.selects(tc.namespace, tc.baseline); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}
