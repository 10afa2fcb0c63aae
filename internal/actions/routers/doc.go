// SPDX-License-Identifier: Apache-2.0

// Package routers tells of TrafficRouters: their capabilities, the releases that name them ([DescribeRouter]), and the
// reasons why a split would not become effective ([CheckRouter]).
//
//	TrafficRouter, releases ──[DescribeRouter]──▶ Report
//	Report, cluster ──[CheckRouter]──▶ Findings, each OK, Problem or Unknown
//
// The discovery server alone reaches the program of a router. So the status tells whether the program answers, and the
// reads of the cluster tell the rest.
package routers
