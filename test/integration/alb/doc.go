// SPDX-License-Identifier: Apache-2.0

// Package alb tests the connector of Application Load Balancers with the SDK of AWS and moto, through a way that
// throttles, delays and loses answers. Moto divides no requests, so no test asks where a request goes.
//
// The tests have the build tag integration. The environment's MOTO is the path of the program.
package alb
