// SPDX-License-Identifier: Apache-2.0

// Package images is the home of the programs whose container images only the
// demo and the tests use. The images themselves are built by hack/cluster:
//
//	cluster image build --name shop --package ./hack/images/shop --tag docker.io/plumbline/shop:v1 --out shop.tar
//	cluster image redis --tag docker.io/plumbline/redis:local --out redis.tar
package images
