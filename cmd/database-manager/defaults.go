// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"coolops.cn/database-manager/internal/app"
)

// defaults are the flags about databases whose specs say nothing.
type defaults struct {
	registry     string
	pullSecrets  []string
	storageClass string
	tolerations  []string
	// read is what they say.
	read app.Defaults
}

func (d *defaults) register(set *pflag.FlagSet) {
	set.StringVar(&d.registry, "default-registry", "", "`registry` that new databases take upstream images from, such as registry.example.com/mirror; default: upstream's. This flag and the next three count when a database is created, which then keeps what they said")
	set.StringSliceVar(&d.pullSecrets, "default-image-pull-secrets", nil, "`names` of Secrets in a database's namespace that open the registry, for specs without imagePullSecrets; separated by commas")
	set.StringVar(&d.storageClass, "default-storage-class", "", "`name` of the StorageClass for specs without storageClassName; default: the cluster's default class")
	set.StringSliceVar(&d.tolerations, "default-tolerations", nil, "`taints` that members tolerate, for specs without tolerations, such as dedicated=databases:NoSchedule, or dedicated:NoSchedule for any value; separated by commas")
}

// registryName is a host, a port perhaps, and a path perhaps.
var registryName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?(:[0-9]{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*$`)

// parse reads the flags, and fails with one sentence if one can't be.
func (d *defaults) parse() error {
	if d.registry != "" && !registryName.MatchString(d.registry) {
		return fmt.Errorf("--default-registry is %q, which isn't a registry: write for example registry.example.com:5000/mirror, without https://", d.registry)
	}
	for _, name := range d.pullSecrets {
		if len(validation.IsDNS1123Subdomain(name)) > 0 {
			return fmt.Errorf("--default-image-pull-secrets names %q, which can't be a Secret", name)
		}
	}
	if d.storageClass != "" && len(validation.IsDNS1123Subdomain(d.storageClass)) > 0 {
		return fmt.Errorf("--default-storage-class is %q, which can't be a StorageClass", d.storageClass)
	}
	tolerations, err := app.ParseTolerations(d.tolerations)
	if err != nil {
		return fmt.Errorf("--default-tolerations: %w", err)
	}
	d.read = app.Defaults{Registry: d.registry, ImagePullSecrets: d.pullSecrets, StorageClass: d.storageClass, Tolerations: tolerations}
	return nil
}
