// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// scopeAnnotations say what a proxy depends on. A pod that has none has its namespace's.
var scopeAnnotations = []string{UpstreamsAnnotation, inject.AnnotationLocalPorts}

// rescoped says that a pod depends on something else than before. A scope is read when a
// stream begins, so its streams end: the next ones have what it depends on now. A split
// would wait for it until then, as for one that does not answer.
func rescoped(was, is *corev1.Pod) bool {
	if was.Labels[inject.LabelProxy] != is.Labels[inject.LabelProxy] {
		return true
	}
	for _, name := range scopeAnnotations {
		before, had := was.Annotations[name]
		after, has := is.Annotations[name]
		if had != has || before != after {
			return true
		}
	}
	return false
}

// onNamespaces tells of changed exports, and of labels that give hosts, and ends the streams of all pods to which an
// annotation of their namespace counts that has changed.
func (s *sources) onNamespaces(ctx context.Context, changed changed, rescoped func(uid string)) toolscache.ResourceEventHandler {
	exports := func(object any) (string, bool) {
		n, is := object.(*corev1.Namespace)
		if !is {
			return "", false
		}
		export, has := n.Annotations[ir.ExportToAnnotation]
		return export, has
	}
	tell := func(object any) {
		if n, is := lastOf(object).(*corev1.Namespace); is {
			changed(Later, dirty{namespaces: map[string]bool{n.Name: true}})
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			if _, has := exports(object); has || len(s.grants) > 0 {
				tell(object)
			}
		},
		UpdateFunc: func(before, after any) {
			was, is := before.(*corev1.Namespace), after.(*corev1.Namespace) //nolint:forcetypeassert // informers keep one type
			for _, name := range scopeAnnotations {
				if was.Annotations[name] != is.Annotations[name] {
					s.rescope(ctx, is.Name, name, rescoped)
				}
			}
			former, had := exports(was)
			if export, has := exports(is); had != has || former != export || len(s.grants) > 0 && !maps.Equal(was.Labels, is.Labels) {
				tell(after)
			}
		},
		DeleteFunc: tell,
	}
}

func (s *sources) rescope(ctx context.Context, namespace, annotation string, rescoped func(uid string)) {
	var pods corev1.PodList
	if err := s.cache.List(ctx, &pods, client.InNamespace(namespace), client.MatchingFields{injectedField: "true"}, client.UnsafeDisableDeepCopy); err != nil {
		s.log.Error(err, "listing the pods of a namespace after a change of its proxies' dependencies", "namespace", namespace)
		return
	}
	for i := range pods.Items {
		if _, own := pods.Items[i].Annotations[annotation]; !own {
			rescoped(string(pods.Items[i].UID))
		}
	}
}
