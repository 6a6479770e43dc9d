#!/usr/bin/perl
# Whole models on devices: the error against 64-bit floats stays within twice that of the device's own unfused plan without rewrites, and 1e-6 of the largest value.
# SNT_LIGHT_MODELS names the folder of the onnx package's light models, whose constant weights tests/onnx/reseed replaces; SNT_MINILM a model with
# symbolic batch and tokens (examples/models/make.py), run with two of each. What is true says the host's evaluator of the graph that tests/onnx/widen
# writes. One model and one seed on two devices here; all, two seeds and every device with SNT_TEST_FULL. SNT_TEST_DEVICES and SNT_TEST_MODELS
# (a regular expression) choose; SNT_ERROR_TABLE names a file for a table. Output: TAP.
use strict;
use warnings;
use Test::More;
use FindBin;
use lib $FindBin::Bin;
use Sinter;
my $folder = $ENV{SNT_LIGHT_MODELS} // '';
my $minilm = $ENV{SNT_MINILM} // '';
my $full = $ENV{SNT_TEST_FULL};
plan skip_all => 'SNT_LIGHT_MODELS names no folder of light models, SNT_MINILM no model' unless -d $folder || -f $minilm;
my $chosen = $ENV{SNT_TEST_MODELS} // ($full ? '.' : 'squeezenet');
my @devices = split / /, $ENV{SNT_TEST_DEVICES}
  // ('opencl:pocl vulkan:llvmpipe' . ($full ? ' vulkan:swiftshader cuda-text opencl:rusticl' : ''));
my @lights = -d $folder ? sort(glob("$folder/light_*/model.onnx"), glob("$folder/light_*.onnx")) : ();

# ---- .npy files ----
sub write_ints { my ($path, $rows, $columns, @values) = @_; npy($path, '<i8', [$rows, $columns], pack 'q<*', @values) }

# ---- what is run: [name, text, port, options] ----
sub sample {
  my ($name, $text, @options) = @_;
  open my $in, '<', $text or die $!;
  my ($port) = map { /^\s*return (?:"([^"]*)"|([^\s,=]+))=/ ? $1 // $2 : () } <$in>;
  return {name => $name, text => $text, port => $port, options => "@options"};
}
sub samples_of_light {
  my ($model) = @_;
  my ($name) = $model =~ /(light_\w+)/;
  my $said = `$sinter import $model -o $dir/$name.snt 2>&1`;
  is($?, 0, "$name is imported") or diag($said);
  my @out;
  for my $seed ($full ? (1000, 2000) : 1000) {
    my $text = "$dir/$name-$seed.snt";
    system("tests/onnx/reseed $seed <$dir/$name.snt >$text") == 0 or die;
    push @out, sample("$name, weights $seed", $text);
  }
  return @out;
}
sub samples_of_minilm {
  my $said = `$sinter import $minilm -o $dir/minilm.snt 2>&1`;
  is($?, 0, 'MiniLM is imported') or diag($said);
  my @out;
  for ([1, 128], [3, 17]) {
    my ($batch, $tokens) = @$_;
    my $path = "$dir/$batch-$tokens";
    write_ints("$path-ids.npy", $batch, $tokens, map { (101 + 7919 * $_ + 13 * $_ * $_) % 30000 } 1 .. $batch * $tokens);
    write_ints("$path-mask.npy", $batch, $tokens, map { my $row = $_; map { $_ < $tokens - 3 * $row ? 1 : 0 } 0 .. $tokens - 1 } 0 .. $batch - 1);
    push @out, sample("MiniLM, batch $batch, $tokens tokens", "$dir/minilm.snt",
      "--open --dim batch=$batch --dim tokens=$tokens --input input_ids=$path-ids.npy --input attention_mask=$path-mask.npy");
  }
  return @out;
}

sub run_on {    # what a device gives: the numbers, and what was said if there are none
  my ($s, $text, $device, $more) = @_;
  unlink "$dir/out.npy";
  my $said = `$sinter run $text --device $device $s->{options} $more --output '$s->{port}=$dir/out.npy' 2>&1`;
  return $? ? ([], $said) : ([numbers("$dir/out.npy")], $said);
}
sub error_of {
  my ($got, $want) = @_;
  return 'inf' if @$got != @$want || !@$want;
  my $worst = 0;
  for (0 .. $#$want) {
    my $error = abs($got->[$_] - $want->[$_]);
    return 'inf' if $error != $error;
    $worst = $error if $error > $worst;
  }
  return $worst;
}

my @rows;
for my $s ((map { samples_of_light($_) } grep { /$chosen/ } @lights), -f $minilm && 'minilm' =~ /$chosen/ ? samples_of_minilm() : ()) {
  system("tests/onnx/widen <$s->{text} >$s->{text}.wide.snt") == 0 or die;
  my ($want, $words) = run_on($s, "$s->{text}.wide.snt", 'host', '');
  my ($low, $high) = (sort { $a <=> $b } @$want)[0, -1];
  ok(@$want && $high > $low, "$s->{name}: in 64-bit floats, and no constant") or diag($words);
  next unless @$want;
  my $most = abs $low > abs $high ? abs $low : abs $high;
  my %errors = (host => error_of((run_on($s, $s->{text}, 'host', ''))[0], $want) / $most);
  for my $device (@devices) {
    my ($got, $said) = run_on($s, $s->{text}, $device, '');
    SKIP: {
      skip(lacks($device), 1) if lacks($device);
      my ($plain, $also) = run_on($s, $s->{text}, $device, '--unfused --no-rewrites');
      my ($error, $allowed) = (error_of($got, $want), error_of($plain, $want));
      ok($error ne 'inf' && $allowed ne 'inf' && $error <= 2 * $allowed + 1e-6 * $most, "$s->{name}: $device errs by $error, unfused by $allowed")
        or diag("$said$also");
      $errors{$device} = sprintf '%.2g / %.2g', $error / $most, $allowed / $most if $error ne 'inf' && $allowed ne 'inf';
    }
  }
  push @rows, "| $s->{name} | " . join(' | ', sprintf('%.2g', $errors{host}), map { $errors{$_} // '-' } @devices) . " |\n";
}
# Reproducible: the same bits of the whole model wherever the probe lets it run.
if (-f $minilm && $full && 'minilm' =~ /$chosen/) {
  my ($s) = sample('MiniLM', "$dir/minilm.snt");
  write_ints("$dir/few-ids.npy", 1, 6, 101, 2023, 2003, 1037, 3231, 102);
  write_ints("$dir/few-mask.npy", 1, 6, (1) x 6);
  $s->{options} = "--numerics reproducible --open --dim batch=1 --dim tokens=6 --input input_ids=$dir/few-ids.npy --input attention_mask=$dir/few-mask.npy";
  my ($want) = run_on($s, $s->{text}, 'host', '');
  for my $device (@devices) {
    my ($got, $said) = run_on($s, $s->{text}, $device, '');
    SKIP: {
      skip(lacks($device), 1) if lacks($device);
      skip("$device: $said", 1) if !@$got && $said =~ /cannot give reproducible results/;
      ok(@$got && "@$got" eq "@$want", "$s->{name}, reproducible: $device has the host's bits") or diag($said);
    }
  }
}
if ($ENV{SNT_ERROR_TABLE} && open my $out, '>', $ENV{SNT_ERROR_TABLE}) {
  print $out '| model | ', join(' | ', 'host', @devices), " |\n", '|---|', '---|' x (1 + @devices), "\n", @rows;
}
done_testing();
