// SPDX-License-Identifier: Apache-2.0

package specguard

import "github.com/plumbline-dev/plumbline/pkg/specguard/canon"

// benignPaths are never drift, whoever writes them: the mark of
// `kubectl rollout restart` asks for new pods of the same template, and the two
// others are bookkeeping that nothing runs by. Repairing the first would cause a
// second rollout (fluxcd/flux2#2526). Who wrote them is still reported.
var benignPaths = mustPaths(
	"/spec/template/metadata/annotations/kubectl.kubernetes.io~1restartedAt",
	"/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration",
	"/metadata/annotations/deployment.kubernetes.io~1revision",
)

func mustPaths(texts ...string) []canon.Path {
	paths := make([]canon.Path, len(texts))
	for i, text := range texts {
		p, err := canon.ParsePath(text)
		if err != nil {
			panic("specguard: " + err.Error()) // a constant of this package
		}
		paths[i] = p
	}
	return paths
}
