// SPDX-License-Identifier: Apache-2.0

package assemble

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/plumbline-dev/plumbline/hack/release/internal/oci"
)

// charts is the path of charts in a registry, below its address.
const charts = "charts"

// Push uploads the images, and then the chart that names them. All of them are asked for
// first: a version that the registry has with other content is an *[oci.TakenError].
func Push(ctx context.Context, options Options, release *Release) error {
	references := map[string]name.Tag{}
	var problems []error
	for _, image := range slices.Sorted(maps.Keys(release.Images)) {
		reference, err := options.Registry.Reference(image, options.Version.String())
		if err != nil {
			return err
		}
		digest, err := release.Images[image].Digest()
		if err != nil {
			return fmt.Errorf("computing the digest of the image %s: %w", image, err)
		}
		references[image] = reference
		problems = append(problems, oci.Check(ctx, reference, digest.String()))
	}
	chart, err := options.Registry.Reference(charts+"/plumbline", options.Version.Chart())
	if err != nil {
		return err
	}
	packed, err := os.ReadFile(release.Chart)
	if err != nil {
		return fmt.Errorf("reading the chart: %w", err)
	}
	there, err := oci.HasLayer(ctx, chart, "sha256:"+hexSum(packed))
	if err := errors.Join(append(problems, err)...); err != nil {
		return err
	}
	for _, image := range slices.Sorted(maps.Keys(references)) {
		options.say("pushing %s", references[image])
		if err := oci.Push(ctx, references[image], release.Images[image]); err != nil {
			return err
		}
	}
	if there {
		options.say("the chart is there already: %s", chart)
		return nil
	}
	repository := strings.TrimSuffix(options.Registry.Address, "/") + "/" + charts
	options.say("pushing the chart to oci://%s", repository)
	digest, err := options.Helm.Push(ctx, release.Chart, repository, options.Registry.PlainHTTP)
	if err != nil {
		return err
	}
	options.say("pushed %s@%s", chart, digest)
	return nil
}
