// SPDX-License-Identifier: Apache-2.0

package chart

import "fmt"

// Redis and Envoy are other projects' programs. A release names their projects' own
// images; only clusters of tests have images made of the programs of a machine.
const (
	redisRepository = "docker.io/library/redis"
	redisTag        = "8.2"
)

// UpstreamImages are those that a chart with these values pulls besides the release's own.
// That of Envoy is the one that the chart names in the repository.
func UpstreamImages(values []byte) ([]Upstream, error) {
	const proxy = "mesh.proxy.image"
	repository, err := Scalar(values, proxy+".repository")
	if err != nil {
		return nil, fmt.Errorf("reading the image of Envoy: %w", err)
	}
	tag, err := Scalar(values, proxy+".tag")
	if err != nil {
		return nil, fmt.Errorf("reading the image of Envoy: %w", err)
	}
	return []Upstream{
		{Name: "redis", Values: "redis.image", Repository: redisRepository, Tag: redisTag},
		{Name: "envoy", Values: proxy, Repository: repository, Tag: tag},
	}, nil
}
