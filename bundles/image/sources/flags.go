package sources

import "github.com/spf13/pflag"

// AddFlags adds the flags for the settings that all programs share.
func (p *Paths) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&p.Config, "image-config", "",
		"directory with settings for image registries, such as a mounted ConfigMap; a changed file applies to the next image")
	flags.StringVar(&p.RegistriesConf, "image-registries-conf", "",
		"registries.conf with mirrors and blocked registries, or a directory such as /etc/containers")
	flags.StringSliceVar(&p.CertsDirs, "image-certs-dir", nil,
		"directory with hosts.toml files or certificates for each registry, such as /etc/docker/certs.d; may be repeated")
}
