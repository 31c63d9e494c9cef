// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// The labels of the Deployment and of its pods, as in
// kubernetes/sample-controller. Together they are the Deployment's selector.
const (
	// LabelApp is always AppNginx.
	LabelApp = "app"

	// LabelController is the name of the Foo.
	LabelController = "controller"

	// AppNginx is the value of LabelApp.
	AppNginx = "nginx"
)
