package config

// Default is the configuration of an empty file: every default, no providers
// and no models.
func Default() *Config {
	var f file
	initialise(&f)
	return &Config{Settings: f.Settings}
}
